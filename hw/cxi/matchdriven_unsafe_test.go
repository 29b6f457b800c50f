package cxi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/seam"
	"github.com/weft-fabric/weft/hw/cxi/internal/step"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/hot"
)

// drivenMatching is a matching that is driven as C does, without Progress.
type drivenMatching struct {
	*matching
	bell *seam.Bell
	post *hot.MatchPost
	ev   *hot.MatchEvent
	at   hw.Placed
}

func newDrivenMatching(t *testing.T, size int) *drivenMatching {
	t.Helper()
	if !seam.Possible() {
		t.Skip("C calls no Go code without the runtime here")
	}
	return drivenBy(t, newMatching(t, MatchConfig{}, size))
}

// drivenBy drives a matching so.
func drivenBy(t *testing.T, x *matching) *drivenMatching {
	t.Helper()
	if x.i.match.cfg.Mode != MatchHardware {
		t.Skip("software matches")
	}
	return &drivenMatching{x, new(seam.Bell), new(hot.MatchPost), new(hot.MatchEvent), x.memory.(*Memory).Place()}
}

func (x *drivenMatching) transport() uintptr { return uintptr(unsafe.Pointer(x.i.HotMatch())) }

// give posts p. Its memory, unless inline, is n bytes at off of x's.
func (x *drivenMatching) give(p hot.MatchPost, off, n int, inline bool) uintptr {
	p.Length = uint32(n)
	if p.Kind&hot.MatchReceive != 0 || inline {
		p.Buf = uintptr(unsafe.Pointer(&x.b[off]))
	}
	if !inline {
		p.At, p.Space = x.at.At+uint64(off), x.at.Space
	}
	*x.post = p
	said := PostMatched(x.transport(), uintptr(unsafe.Pointer(x.post)), uintptr(unsafe.Pointer(x.bell)), 0)
	rest := x.bell.Rest != 0
	rung(x.bell)
	for from := uintptr(0); rest; rest = from != 0 {
		from = RingRest(x.transport(), uintptr(unsafe.Pointer(x.bell)), from, 0)
		rung(x.bell)
	}
	return said
}

// next polls until something is found.
func (x *drivenMatching) next() uintptr {
	*x.ev = hot.MatchEvent{}
	for end := time.Now().Add(30 * time.Second); ; {
		found := NextMatched(x.transport(), uintptr(unsafe.Pointer(x.ev)), uintptr(unsafe.Pointer(x.bell)), 0)
		rung(x.bell)
		if found != hot.TransportEmpty && found != hot.TransportAgain || time.Now().After(end) {
			return found
		}
	}
}

// TestMatchDriven: messages of lengths that go at once are posted, matched and taken in without Progress of either
// side, while events and commands go round several times.
func TestMatchDriven(t *testing.T) {
	const count = 20000
	a, b := newDrivenMatching(t, 32768), newDrivenMatching(t, 32768)
	lengths := []int{0, 8, 192, 193, 2048, 18433}
	for k := range uint64(count) {
		n := lengths[k%uint64(len(lengths))]
		fillBytes(a.b[:n], k)
		r := hot.MatchPost{Peer: uint64(a.self), Tag: k, Context: k + 7}
		r.Kind = hot.MatchReceive | hot.MatchTagged
		m := hot.MatchPost{Peer: uint64(b.self), Tag: k, Data: ^k, Context: k}
		m.Kind = hot.MatchTagged | hot.MatchData
		if k%2 == 0 {
			r.Kind |= hot.MatchAny
			m.Kind |= hot.MatchAwaited
		}
		if said := b.give(r, 0, 20000, false); said != hot.PathSent {
			t.Fatalf("receive %d: %d", k, said)
		}
		if said := a.give(m, 0, n, n > 0 && n <= 192); said != hot.PathSent {
			t.Fatalf("message %d: %d", k, said)
		}
		want := hot.MatchEvent{Context: k + 7, From: uint64(a.self), Tag: k, Data: ^k, Length: uint64(n),
			Flags: hot.MatchReceive | hot.MatchTagged | hot.MatchData}
		if found := b.next(); found != hot.TransportMatched || *b.ev != want || !bytes.Equal(a.b[:n], b.b[:n]) {
			t.Fatalf("receive %d: %d, %+v, want %+v", k, found, *b.ev, want)
		}
		if found := a.next(); found != hot.TransportMatched || a.ev.Context != k || a.ev.Flags != 0 {
			t.Fatalf("message %d: %d, %+v", k, found, *a.ev)
		}
	}
	if len(a.events)+len(b.events) != 0 {
		t.Errorf("%d and %d events of Progress", len(a.events), len(b.events))
	}
}

// TestMatchDrivenLeaves: what is not of the common case is left to Go as it was.
func TestMatchDrivenLeaves(t *testing.T) {
	a, b := newDrivenMatching(t, 32768), newDrivenMatching(t, 32768)
	message := hot.MatchPost{Peer: uint64(b.self), Tag: 1, Kind: hot.MatchTagged}
	receive := hot.MatchPost{Tag: 1, Kind: hot.MatchReceive | hot.MatchTagged | hot.MatchAny}
	post := func(what string, x *drivenMatching, p hot.MatchPost, n int, want uintptr) {
		t.Helper()
		if said := x.give(p, 0, n, false); said != want {
			t.Fatalf("%s: %d, want %d", what, said, want)
		}
	}
	leaves := func(what string, x *drivenMatching) {
		t.Helper()
		if found := x.next(); found != hot.TransportGo {
			t.Fatalf("%s: %d, %+v", what, found, *x.ev)
		}
	}
	settled := func() {
		await(a.matching, b.matching, 1, 1)
		for a.i.Progress(8)+b.i.Progress(8) > 0 || a.i.match.troubled() || b.i.match.troubled() {
		}
		a.clear()
		b.clear()
	}
	post("a rendezvous", a, message, 18434, hot.PathGo)
	bad := message
	bad.Peer = 1 << 63
	post("a peer that is none", a, bad, 8, hot.PathGo)

	post("a message", a, message, 8, hot.PathSent)
	leaves("an unexpected message", b)
	a.next()
	b.i.Progress(8)
	post("a receive", b, receive, 8, hot.PathSent)
	leaves("the end of an unexpected message", b)
	await(a.matching, b.matching, 0, 1)
	if e := b.events[0]; e.Kind != hw.MatchReceived || e.Length != 8 || e.Err != nil {
		t.Errorf("%+v", e)
	}
	b.clear()

	post("a receive", b, receive, 4, hot.PathSent)
	post("a message", a, message, 8, hot.PathSent)
	leaves("a message that is cut off", b)
	await(a.matching, b.matching, 1, 1)
	if e := b.events[0]; e.Length != 4 || e.Wanted != 8 {
		t.Errorf("%+v", e)
	}
	settled()

	more := receive
	more.Kind |= hot.MatchMore
	post("a receive with more to follow", b, more, 8, hot.PathSent)
	leaves("an append without a doorbell", b)
	more = message
	more.Kind |= hot.MatchMore
	post("a message with more to follow", a, more, 8, hot.PathSent)
	leaves("a command without a doorbell", a)
	settled()

	post("a receive", b, receive, 8, hot.PathSent)
	if err := b.m.CancelContext(0); err != nil {
		t.Fatal(err)
	}
	leaves("a cancelled receive", b)
	await(a.matching, b.matching, 0, 1)
	if e := b.events[0]; e.Kind != hw.MatchCanceled {
		t.Errorf("%+v", e)
	}
}

// TestMatchDrivenMore: what is posted with more to follow goes with the next post, and needs no Progress then.
func TestMatchDrivenMore(t *testing.T) {
	a, b := newDrivenMatching(t, 32768), newDrivenMatching(t, 32768)
	message := hot.MatchPost{Peer: uint64(b.self), Tag: 1, Kind: hot.MatchTagged}
	receive := hot.MatchPost{Tag: 1, Kind: hot.MatchReceive | hot.MatchTagged | hot.MatchAny}
	for k := range 1000 {
		for _, more := range []uint32{hot.MatchMore, 0} {
			p := receive
			p.Kind |= more
			if said := b.give(p, 0, 8, false); said != hot.PathSent {
				t.Fatalf("receive %d: %d", k, said)
			}
		}
		for _, more := range []uint32{hot.MatchMore, 0} {
			p := message
			p.Kind |= more
			if said := a.give(p, 0, 8, true); said != hot.PathSent {
				t.Fatalf("message %d: %d", k, said)
			}
		}
		for _, x := range []*drivenMatching{a, b, a, b} {
			if found := x.next(); found != hot.TransportMatched {
				t.Fatalf("pair %d: %d", k, found)
			}
		}
	}
}

// TestMatchMoreStripes: of messages with more to follow that go by several transmit queues the last one rings, once for
// each queue that holds some and for no other, of Go and of threads of C; all come without Progress of their sender.
func TestMatchMoreStripes(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1") // the peers have PIDs of the test's choice
		return
	}
	const stripes, each = 4, 3
	for _, direct := range []bool{false, true} {
		if direct && !seam.Possible() {
			continue
		}
		a := newMatching(t, MatchConfig{Stripes: stripes}, 4096)
		driven := drivenBy(t, a)
		var peers []*matching
		for k := range stripes {
			peers = append(peers, a.peerIn(k, MatchConfig{}, 4096))
		}
		for used := 1; used <= stripes; used++ {
			for _, b := range peers[:used] {
				b.clear()
				for range each {
					b.receive(hw.MatchReceive{From: hw.AnyAddress, Tagged: true, Local: b.at(0, 8)})
				}
			}
			before := rings(t)
			for n := range each * used {
				to, more := peers[n%used].self, n < each*used-1
				p := hot.MatchPost{Peer: uint64(to), Kind: hot.MatchTagged}
				if more {
					p.Kind |= hot.MatchMore
				}
				if !direct {
					a.send(hw.MatchSend{To: to, Tagged: true, Inject: []byte{1}, More: more})
				} else if said := driven.give(p, 0, 1, true); said != hot.PathSent {
					t.Fatalf("message %d: %d", n, said)
				}
			}
			if n := rings(t) - before; n != uint64(used) {
				t.Errorf("direct %v: %d doorbells for %d queues", direct, n, used)
			}
			for k, b := range peers[:used] {
				for end := time.Now().Add(10 * time.Second); len(b.events) < each; b.i.Progress(8) {
					if time.Now().After(end) {
						t.Fatalf("direct %v: %d of %d messages by queue %d of %d", direct, len(b.events), each, k,
							used)
					}
				}
			}
			a.clear()
			await(a, a, each*used, 0)
		}
	}
}

// rings is how many doorbells of command queues the model has seen.
func rings(t *testing.T) uint64 {
	t.Helper()
	n, err := step.Count(library(t), "rings")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMatchDrivenMemory: regions are written, read and changed without Progress of either side, whatever index they
// have; what is refused is left to Go.
func TestMatchDrivenMemory(t *testing.T) {
	a, b := newDrivenMatching(t, 32768), newDrivenMatching(t, 32768)
	post := func(what string, p hot.MatchPost, n int, inline bool, want uintptr) {
		t.Helper()
		p.Peer, p.Data, p.Context = uint64(b.self), 64, 9
		if said := a.give(p, 0, n, inline); said != want {
			t.Fatalf("%s: %d, want %d", what, said, want)
		}
	}
	ends := func(what string) {
		t.Helper()
		if found := a.next(); found != hot.TransportMatched || *a.ev != (hot.MatchEvent{Context: 9}) {
			t.Fatalf("%s: %d, %+v", what, found, *a.ev)
		}
	}
	for _, key := range exposed {
		id := b.expose(key, hw.RemoteRead|hw.RemoteWrite)
		write := hot.MatchPost{Tag: key, Kind: hot.MatchWrite}
		sum := hot.MatchPost{Tag: key, Kind: hot.MatchAtomic,
			Op: uint32(hw.MatchSum) | uint32(hw.MatchUint8)<<hot.MatchTypeShift}
		if key == exposed[0] {
			post("a write with its command before the memory of places is mapped", write, 8, true, hot.PathSent)
			ends("a write with its command")
			post("an injected write to a shared list", hot.MatchPost{Tag: 1000, Kind: hot.MatchWrite}, 8, true,
				hot.PathGo)
			fetch := sum
			fetch.Kind |= hot.MatchRead
			post("an operation that fetches, likewise", fetch, 1, true, hot.PathGo)
			if _, err := a.perform(hw.MatchAtomic{To: b.self, Key: key, Op: hw.MatchSum, Type: hw.MatchUint8,
				Fetch: true}); err != nil {
				t.Fatal(err)
			}
			a.clear()
		}
		for k, n := range []int{0, 1, 192, 193, 224, 225, 20000} {
			for _, more := range []uint32{0, hot.MatchDelivered, hot.MatchOrdered, hot.MatchEvents} {
				fillBytes(a.b[:n], uint64(k)+key)
				write.Kind = hot.MatchWrite | more
				post("a write", write, n, n > 0 && n <= 224, hot.PathSent)
				ends("a write")
				want := bytes.Clone(a.b[:n])
				if !bytes.Equal(b.b[64:64+n], want) {
					t.Fatalf("key %d: %d bytes are not written", key, n)
				}
				clear(a.b[:n])
				post("a read", hot.MatchPost{Tag: key, Kind: hot.MatchRead}, n, false, hot.PathSent)
				ends("a read")
				if !bytes.Equal(a.b[:n], want) {
					t.Fatalf("key %d: %d bytes are not read", key, n)
				}
			}
		}
		a.b[0], b.b[64] = 5, 7
		post("a sum", sum, 1, true, hot.PathSent)
		ends("a sum")
		sum.Op = uint32(hw.MatchWrite) | uint32(hw.MatchUint8)<<hot.MatchTypeShift
		if b.b[64] != 12 {
			t.Errorf("key %d: the sum is %d", key, b.b[64])
		}
		post("an atomic write", sum, 1, true, hot.PathSent)
		ends("an atomic write")
		if b.b[64] != 5 {
			t.Errorf("key %d: written %d", key, b.b[64])
		}
		post("an operation of another size", sum, 2, true, hot.PathGo)
		checkFetches(t, a, b, key)
		sum.Op = uint32(hw.MatchRead) | uint32(hw.MatchUint8)<<hot.MatchTypeShift
		post("an operation that fetches, without a result", sum, 1, true, hot.PathGo)
		sum.Op = 200
		post("an operation that is none", sum, 1, true, hot.PathGo)
		if len(a.events)+len(b.events) != 0 {
			t.Errorf("%d and %d events of Progress", len(a.events), len(b.events))
		}
		b.withdraw(id, key)
		post("a write under a key that is none", hot.MatchPost{Tag: key, Kind: hot.MatchWrite}, 8, false, hot.PathSent)
		if found := a.next(); found != hot.TransportGo {
			t.Fatalf("what is refused: %d, %+v", found, *a.ev)
		}
		await(a.matching, a.matching, 1, 1)
		if err := a.events[0].Err; !errors.Is(err, hw.ErrKey) {
			t.Errorf("what is refused: %v", err)
		}
		a.clear()
	}
	post("a key that is none", hot.MatchPost{Tag: 1 << 40, Kind: hot.MatchWrite}, 8, false, hot.PathGo)
}

// checkFetches: atomic operations of a at the element at 64 of b's region bring what it was, also when they are to be
// delivered, which two answers say.
func checkFetches(t *testing.T, a, b *drivenMatching, key uint64) {
	t.Helper()
	b.b[64] = 5
	for _, c := range []struct {
		op                         hw.MatchOp
		operand, compare, was, now byte
		inline                     bool
	}{
		{hw.MatchSum, 3, 0, 5, 8, true}, {hw.MatchRead, 0, 0, 8, 8, false}, {hw.MatchSwap, 9, 7, 8, 8, true},
		{hw.MatchSwap, 9, 8, 8, 9, true}, {hw.MatchMasked, 0xf0, 0x3c, 9, 0x31, true},
		{hw.MatchWrite, 5, 0, 0x31, 5, true},
	} {
		for _, more := range []uint32{0, hot.MatchDelivered} {
			was := b.b[64]
			a.b[0], a.b[1] = c.operand, c.compare
			p := hot.MatchPost{Peer: uint64(b.self), Tag: key, Data: 64, Context: 9,
				Kind: hot.MatchAtomic | hot.MatchRead | more,
				Op:   uint32(c.op) | uint32(hw.MatchUint8)<<hot.MatchTypeShift}
			if c.compare != 0 {
				p.Compare = uintptr(unsafe.Pointer(&a.b[1]))
			}
			want := hot.MatchEvent{Context: 9, Flags: hot.MatchRead, Fetched: [hot.MatchElement]byte{c.was}}
			if said := a.give(p, 0, 1, c.inline); said != hot.PathSent {
				t.Fatalf("key %d, operation %d: %d", key, c.op, said)
			}
			if found := a.next(); found != hot.TransportMatched || *a.ev != want || b.b[64] != c.now {
				t.Fatalf("key %d, operation %d: %d, %+v, want %+v; %#x", key, c.op, found, *a.ev, want, b.b[64])
			}
			if more == 0 {
				b.b[64] = was
			}
		}
	}
}

// TestMatchDrivenData: writes with data are posted without Progress once their target is known to have room; while it
// has none they are left to Go.
func TestMatchDrivenData(t *testing.T) {
	a, b := newDrivenMatching(t, 32768), newDrivenMatching(t, 32768)
	const key = 500
	b.expose(key, hw.RemoteWrite)
	b.exposeAs(hw.MatchRegion{Memory: b.memory, Key: key, Access: hw.RemoteWrite, Notify: true, Context: key})
	b.clear()
	p := hot.MatchPost{Peer: uint64(b.self), Tag: key, Data: 64, Context: 9, Immediate: 77,
		Kind: hot.MatchWrite | hot.MatchData}
	post := func(what string, n int, inline bool, want uintptr) {
		t.Helper()
		if said := a.give(p, 0, n, inline); said != want {
			t.Fatalf("%s: %d, want %d", what, said, want)
		}
	}
	post("to a peer that is not known", 8, false, hot.PathGo)
	first := hw.MatchTransfer{To: b.self, Key: key, Inject: []byte{1}, Data: 1, HasData: true}
	if err := a.transfer(first); err != nil {
		t.Fatal(err)
	}
	for a.i.match.troubled() || a.i.match.tx.events.Waiting() {
		a.i.Progress(8)
	}
	await(b.matching, b.matching, 1, 1)
	a.clear()
	b.clear()
	for k, n := range []int{0, 1, 192, 193, 20000} {
		fillBytes(a.b[:n], uint64(k))
		post("a write", n, n > 0 && n <= 192, hot.PathSent)
		if found := a.next(); found != hot.TransportMatched || *a.ev != (hot.MatchEvent{Context: 9}) {
			t.Fatalf("%d bytes: %d, %+v", n, found, *a.ev)
		}
		await(b.matching, b.matching, 1, 1)
		if e := b.events[0]; e.Kind != hw.MatchWritten || e.Data != 77 || !e.HasData || e.Length != uint64(n) ||
			e.Offset != 64 || !bytes.Equal(b.b[64:64+n], a.b[:n]) {
			t.Fatalf("%d bytes: %+v", n, e)
		}
		b.clear()
	}
	w := &a.i.match.tx.writes
	w.of(b.self).waiting = []uint32{1}
	post("to a peer that is full", 8, false, hot.PathGo)
	w.of(b.self).waiting = nil
	p.Tag = 1 << 40
	post("under a key that no region has", 8, false, hot.PathGo)
}

// TestOverrunDriven: threads without the runtime notice that events were dropped, and leave the rest to Progress.
func TestOverrunDriven(t *testing.T) {
	a, b := newDrivenMatching(t, 64), newDrivenMatching(t, 64)
	status := b.i.match.rx.events.memory[8*wire.EqStatusUnackdDroppedEventWord:]
	drops := uint64(1<<wire.EqStatusUnackdDroppedEventShift | 1<<wire.EqStatusEventDropSeqNoShift)
	stays := hot.MatchPost{Peer: uint64(a.self), Kind: hot.MatchReceive | hot.MatchTagged, Context: 1 << 20}
	if said := b.give(stays, 0, 8, false); said != hot.PathSent {
		t.Fatalf("a receive of no message: %d", said)
	}
	for k := 0; ; k++ {
		if k == 8 {
			binary.LittleEndian.PutUint64(status, drops)
		}
		r := hot.MatchPost{Peer: uint64(a.self), Kind: hot.MatchReceive, Context: uint64(k)}
		if said := b.give(r, 0, 8, false); said == hot.PathGo && k > 8 {
			break
		} else if said != hot.PathSent || k > 100000 {
			t.Fatalf("receive %d: %d", k, said)
		}
		if said := a.give(hot.MatchPost{Peer: uint64(b.self)}, 0, 8, true); said != hot.PathSent {
			t.Fatalf("message %d: %d", k, said)
		}
		if found := a.next(); found != hot.TransportMatched {
			t.Fatalf("message %d: %d", k, found)
		}
		if found := b.next(); found == hot.TransportGo && k > 8 {
			b.i.Progress(8)
		} else if found != hot.TransportMatched {
			t.Fatalf("receive %d: %d", k, found)
		}
	}
	if s := b.stats(); s.Overruns != 1 || s.State != hw.MatchDisabled {
		t.Errorf("%+v", s)
	}
	b.clear()
	for end := time.Now().Add(time.Minute); len(b.events) == 0 && time.Now().Before(end); {
		b.i.Progress(8)
	}
	if len(b.events) != 1 || b.events[0].Context != stays.Context || !errors.Is(b.events[0].Err, unix.EIO) {
		t.Errorf("%+v", b.events)
	}
}
