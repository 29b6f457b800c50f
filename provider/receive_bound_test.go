package provider

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// TestUnexpectedMemory floods a receiver that polls and posts nothing with messages of a few bytes, of which the bytes
// alone reach no bound: the sender finds no room some time. Messages of another sender come all the same, and receives
// that are posted get all messages in order, whereupon the sender finds room again.
func TestUnexpectedMemory(t *testing.T) {
	const bound = 64 << 10
	bounded := func(c *config.Config) { c.UnexpectedMemory = bound }
	for name, open := range map[string]func(t *testing.T) (a, b, other *side){
		"one host": func(t *testing.T) (a, b, other *side) {
			bench := newBench(t, bounded, nil)
			a, b = bench.pair(t)
			other = bench.side(t)
			other.know(b)
			b.know(other)
			return a, b, other
		},
		"over UDP": func(t *testing.T) (a, b, other *side) {
			s := overUDP(t, 3, bounded)
			return s[0], s[1], s[2]
		},
	} {
		one, some := []byte{7}, pattern(24, 1)
		for kind, send := range map[string]SendArgs{
			"no bytes":       {},
			"injected":       {Inject: true},
			"a byte":         {IOV: iovOf(one)},
			"delivery":       {Flags: fi.DeliveryComplete},
			"injected bytes": {IOV: iovOf(some), Inject: true},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				a, b, other := open(t)
				rx := leasedOf(b.ep).rx
				send.Dest, send.HasData, send.Tagged = a.addr[b], true, true
				for round := range 2 {
					sent := floodUntilFull(t, a, b, send)
					if n := rx.matching.UnexpectedMessages(); n < bound/1000 || n > int(sent) ||
						rx.matching.Memory < bound {
						t.Errorf("%d of %d messages are kept, in %d bytes", n, sent, rx.matching.Memory)
					}
					other.send(SendArgs{Dest: other.addr[b], Tag: 9, Tagged: true, IOV: iovOf(pattern(100, 1))}, b)
					b.recv(RecvArgs{Src: fi.AddrUnspec, Tag: 9, Tagged: true, IOV: iovOf(make([]byte, 100))}, a, other)
					if e := b.completion(a, other); e.Tag != 9 || e.Len != 100 {
						t.Fatalf("round %d: %+v instead of the other sender's message", round, e)
					}
					got := make([]byte, 24)
					for n := range sent {
						b.recv(RecvArgs{Src: fi.AddrUnspec, Tagged: true, IOV: iovOf(got)}, a)
						if e := b.completion(a); e.Data != n {
							t.Fatalf("round %d: message %d of %d comes as number %d", round, e.Data, sent, n)
						}
					}
					if rx.matching.Memory != 0 || rx.matching.UnexpectedBytes != 0 || rx.matching.Closed {
						t.Errorf("%d bytes of memory and %d of payload are counted for none, closed %v",
							rx.matching.Memory,
							rx.matching.UnexpectedBytes, rx.matching.Closed)
					}
				}
			})
		}
		runtime.KeepAlive(one)
		runtime.KeepAlive(some)
	}
}

// floodUntilFull sends until there is no room for a while in which the receiver polls, and returns how many messages it
// has sent.
func floodUntilFull(t *testing.T, a, b *side, send SendArgs) (sent uint64) {
	t.Helper()
	a.send(send, b) // connects
	sent++
	for last := time.Now(); time.Since(last) < 300*time.Millisecond; {
		send.Data = sent
		switch err := a.ep.Send(&send); {
		case err == nil:
			sent, last = sent+1, time.Now()
		case errors.Is(err, fi.EAGAIN):
		default:
			t.Fatal(err)
		}
		if sent == 1<<18 {
			t.Fatalf("there is room for all messages: %d are kept", leasedOf(b.ep).rx.matching.UnexpectedMessages())
		}
		a.ep.Progress()
		b.ep.Progress()
		a.drainSends()
	}
	return sent
}

// drainSends reads the completions of sends that are there.
func (s *side) drainSends() {
	s.t.Helper()
	var list [16]cq.Entry
	if _, err := s.cq.Read(list[:]); err != nil && !errors.Is(err, fi.EAGAIN) {
		s.t.Fatal(err)
	}
}

// TestWindowReopens: messages that stay below one bound do not keep the eager window closed that others have closed by
// exceeding the other bound.
func TestWindowReopens(t *testing.T) {
	const memory, bytes, long, stay, few = 128 << 10, 16 << 10, 4 << 10, 1, 2
	bench := newBench(t, func(c *config.Config) { c.UnexpectedMemory, c.UnexpectedBytes = memory, bytes }, nil)
	a, b := bench.pair(t)
	rx := leasedOf(b.ep).rx
	send := func(tag uint64, n int) {
		a.send(SendArgs{Dest: a.addr[b], Tag: tag, Tagged: true, IOV: iovOf(pattern(n, 1))}, b)
		b.poll()
		a.drainSends()
	}
	receive := func(tag uint64, n int) {
		b.recv(RecvArgs{Src: fi.AddrUnspec, Tag: tag, Tagged: true, IOV: iovOf(make([]byte, n))}, a)
		if e := b.completion(a); e.Tag != tag || e.Len != uint64(n) {
			t.Fatalf("message %+v", e)
		}
	}
	for rx.matching.Memory <= memory*6/10 {
		send(stay, 0)
	}
	for ; !rx.matching.Closed; send(few, long) {
	}
	if rx.matching.Memory > memory || rx.matching.UnexpectedBytes <= bytes {
		t.Fatalf("closed with %d bytes in %d bytes of memory", rx.matching.UnexpectedBytes, rx.matching.Memory)
	}
	for rx.matching.UnexpectedBytes > bytes/2 {
		if !rx.matching.Closed {
			t.Fatalf("open with %d of %d bytes", rx.matching.UnexpectedBytes, bytes)
		}
		receive(few, long)
	}
	if rx.matching.Closed {
		t.Errorf("closed with %d of %d bytes in %d of %d bytes of memory", rx.matching.UnexpectedBytes, bytes,
			rx.matching.Memory, memory)
	}
}
