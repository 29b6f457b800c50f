package provider

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/mem"
)

// TestNoMemoryToKeep has messages of all kinds come while no memory can be mapped to keep them as unexpected. They wait
// at their transport: one whose receive is posted meanwhile is delivered, the others once there is memory, each once
// and in order, and those of which the sender waits for a match or the delivery are acknowledged.
func TestNoMemoryToKeep(t *testing.T) {
	for name, sides := range map[string]func(*testing.T) (a, b *side){
		"one host": func(t *testing.T) (a, b *side) { return newBench(t, nil, nil).pair(t) },
		"over UDP": func(t *testing.T) (a, b *side) {
			s := overUDP(t, 2, nil)
			return s[0], s[1]
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := sides(t)
			swap(t, a, b, 0, false)
			// This one stays, and with it memory for messages and receives, but not for payload.
			b.recv(RecvArgs{Src: fi.AddrUnspec, Tag: 77, Tagged: true})
			a.send(SendArgs{Dest: a.addr[b], Tag: 78, Tagged: true}, b)
			a.completion(b)
			b.recv(RecvArgs{Src: fi.AddrUnspec, Tag: 78, Tagged: true}, a)
			b.completion(a)
			for _, flags := range []uint64{0, fi.DeliveryComplete, fi.MatchComplete} {
				for _, n := range []int{0, 8, 9, 100, 2000, 8192, 100_000} {
					waitForMemory(t, a, b, n, flags)
				}
			}
		})
	}
}

// waitForMemory does so with a few messages of n bytes each.
func waitForMemory(t *testing.T, a, b *side, n int, flags uint64) {
	t.Helper()
	const count = 4
	sent := make([][]byte, count)
	for k := range sent {
		sent[k] = pattern(n, byte(k+1))
	}
	rx := leasedOf(b.ep).rx
	rx.matching.Pool.Trim()
	restore := mem.InjectFaults(func(int) error { return unix.ENOMEM })
	defer func() { restore() }()
	for k := range sent {
		a.send(SendArgs{IOV: iovOf(sent[k]), Dest: a.addr[b], Tagged: true, Context: uint64(k + 1), Flags: flags}, b)
	}
	for range 200 {
		a.ep.Progress()
		b.ep.Progress()
	}
	if kept := rx.matching.UnexpectedMessages(); kept != 0 && n > dataplane.InWord {
		t.Fatalf("%d messages of %d bytes are kept without memory", kept, n)
	}
	got := make([]byte, n+1)
	receive := func(k int) {
		t.Helper()
		b.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec, Tagged: true, Context: uint64(k + 100)}, a)
		e, err := b.next(a)
		if err != nil {
			t.Fatalf("%d bytes, flags %#x: %v, %+v", n, flags, err, failure(b))
		}
		if e.Context != uint64(k+100) || e.Len != uint64(n) || !bytes.Equal(got[:n], sent[k]) {
			t.Fatalf("%d bytes, flags %#x: message %d came as %+v", n, flags, k, e)
		}
	}
	next := 0
	if n <= 8192 { // a longer one takes memory to be read
		receive(0)
		next = 1
	}
	restore()
	restore = func() {}
	for range 200 {
		a.ep.Progress()
		b.ep.Progress()
	}
	for k := next; k < count; k++ {
		receive(k)
	}
	for k := range sent {
		e, err := a.next(b)
		if err != nil {
			t.Fatalf("%d bytes, flags %#x: %v, %+v", n, flags, err, failure(a))
		}
		if e.Context != uint64(k+1) {
			t.Fatalf("%d bytes, flags %#x: send %d completes as number %d", n, flags, e.Context, k+1)
		}
	}
}

// failure is the error that a side's queue has.
func failure(s *side) cq.ErrEntry {
	e, _ := s.cq.ReadErr()
	return e
}

// TestNoMemoryForMessages floods a receiver with messages without bytes while no memory can be mapped: the sender finds
// no room in the end, and all come in order once there is memory.
func TestNoMemoryForMessages(t *testing.T) {
	a, b := newBench(t, nil, nil).pair(t)
	swap(t, a, b, 0, false)
	restore := mem.InjectFaults(func(int) error { return unix.ENOMEM })
	defer func() { restore() }()
	sent, full := uint64(0), 0
	for full < 1000 {
		switch err := a.ep.Send(&SendArgs{Dest: a.addr[b], Data: sent, HasData: true, Inject: true}); {
		case err == nil:
			sent, full = sent+1, 0
		case errors.Is(err, fi.EAGAIN):
			full++
		default:
			t.Fatal(err)
		}
		if sent > 10_000_000 {
			t.Fatal("there is room for all messages")
		}
		b.ep.Progress()
	}
	restore()
	restore = func() {}
	for n := range sent {
		b.recv(RecvArgs{Src: fi.AddrUnspec}, a)
		if e := b.completion(a); e.Data != n {
			t.Fatalf("message %d of %d comes as number %d", e.Data, sent, n)
		}
	}
}
