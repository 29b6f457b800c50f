package cxi

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/step"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// stats are the counters of a matcher.
func (x *matching) stats() hw.MatchStats { return x.m.(hw.MatchCounter).MatchStats() }

// checkUnknown checks that no events came that nothing expects, but those of the test.
func (x *matching) checkUnknown() {
	if n := x.stats().Unknown; n != x.unknown {
		x.t.Errorf("%d events are of a kind that nothing expects, and %d by the test", n, x.unknown)
	}
}

// works has a message go from a to b, once both are idle.
func works(t *testing.T, a, b *matching) {
	t.Helper()
	a.clear()
	b.clear()
	b.receive(hw.MatchReceive{From: hw.AnyAddress, Tagged: true, Tag: 99, Local: b.at(0, 300)})
	a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: 99, Local: a.at(0, 300)})
	await(a, b, 1, 1)
	for _, e := range append(a.events, b.events...) {
		if e.Err != nil {
			t.Errorf("%+v", e)
		}
	}
}

// TestOverrunReceives: a receiver whose event queue overruns ends each receive once, refuses those that are posted
// then, and says so once. What is opened instead works.
func TestOverrunReceives(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		said := alone(t, "fabric=-1", "WEFT_TEST_CXI_MATCH=hardware")
		if n := strings.Count(said, errOverrun(whatReceives).Error()); n != 1 {
			t.Errorf("said %d times: %s", n, said)
		}
		return
	}
	const count = 300
	a := newMatching(t, MatchConfig{}, 4096)
	b := newMatching(t, MatchConfig{Events: 64}, 4096)
	for k := range count {
		a.send(hw.MatchSend{To: b.self, Tagged: true, Inject: []byte{byte(k)}})
		a.i.Progress(64)
		b.i.Progress(64)
	}
	for k := range count {
		b.receive(hw.MatchReceive{From: a.self, Tagged: true, Local: b.at(0, 8), Context: uint64(k)})
	}
	await(b, b, count, count)
	seen, failed := map[uint64]bool{}, 0
	for _, e := range b.events {
		if seen[e.Context] || !e.Last || e.Err != nil && !errors.Is(e.Err, unix.EIO) {
			t.Errorf("%+v", e)
		}
		seen[e.Context] = true
		if e.Err != nil {
			failed++
		}
	}
	if failed == 0 || failed == count || b.stats().Overruns == 0 || b.stats().State != hw.MatchDisabled {
		t.Errorf("%d receives failed, %+v", failed, b.stats())
	}
	_, err := b.m.PostReceive(&hw.MatchReceive{From: a.self, Local: b.at(0, 8)})
	if !errors.Is(err, unix.EIO) {
		t.Errorf("a receive behind that: %v", err)
	}
	if err := b.m.Search(&hw.MatchReceive{From: a.self}); !errors.Is(err, unix.EIO) {
		t.Errorf("a search behind that: %v", err)
	}
	a.clear()
	b.clear()
	b.send(hw.MatchSend{To: a.self, Tagged: true, Tag: 1, Local: b.at(0, 300)}) // sends go on
	a.receive(hw.MatchReceive{From: b.self, Tagged: true, Tag: 1, Local: a.at(0, 300)})
	await(a, b, 1, 1)
	if a.events[0].Err != nil || b.events[0].Err != nil {
		t.Errorf("%+v %+v", a.events, b.events)
	}
	a.clear()
	a.send(hw.MatchSend{To: b.self, Inject: []byte{1}}) // nobody is there
	await(a, a, 1, 1)
	if !errors.Is(a.events[0].Err, hw.ErrPeerDead) {
		t.Errorf("a message behind that: %+v", a.events)
	}
	if err := b.i.Close(); err != nil {
		t.Fatal(err)
	}
	works(t, a, newMatching(t, MatchConfig{Events: 64}, 4096))
}

// TestOverrunSends: a sender whose event queue was filled by notices that a peer makes up ends what it had under way
// and had no answer of, and goes on.
func TestOverrunSends(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1")
		return
	}
	const sends = 8
	a, b := newMatching(t, MatchConfig{Sends: sends}, 4096), newMatching(t, MatchConfig{}, 4096)
	h := newMatching(t, MatchConfig{}, 8)
	to, err := h.i.match.at(a.self, proto.IndexSource)
	if err != nil {
		t.Fatal(err)
	}
	flood := func() {
		for k := range 400 {
			x := &h.i.match.tx
			x.lock.take()
			x.q.Put(&nic.Transfer{Message: nic.Message{To: to, MatchBits: proto.Matched(uint32(k))},
				Initiator: h.i.match.self, EQ: x.events.number})
			x.release(false)
			h.i.Progress(64)
		}
	}
	for round := range 3 { // the NIC counts in one bit
		a.clear()
		b.clear()
		flood()
		for k := range sends {
			b.receive(hw.MatchReceive{From: a.self, Local: b.at(k*8, 8)})
			a.send(hw.MatchSend{To: b.self, Inject: []byte{byte(k)}, Context: uint64(k)})
		}
		await(a, b, sends, sends)
		failed := 0
		for _, e := range a.events {
			if e.Err != nil {
				failed++
				if !errors.Is(e.Err, unix.EIO) {
					t.Errorf("%+v", e)
				}
			}
		}
		if failed == 0 || a.stats().Overruns != uint64(round)+1 {
			t.Fatalf("round %d: %d of %d sends failed, %d overruns", round, failed, sends, a.stats().Overruns)
		}
		works(t, a, b)
	}
}

// TestMatchRefusedOne: of many commands that are under way one is refused: what that is of ends, and all else goes on.
func TestMatchRefusedOne(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1")
		return
	}
	const count, room = 24, 40000
	lengths := []int{0, 8, 100, 192, 1000, 30000}
	a, b := newMatching(t, MatchConfig{}, count*room), newMatching(t, MatchConfig{}, count*room)
	a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: 1 << 20, Local: a.at(0, room)}) // admits its address context
	b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: 1 << 20, Local: b.at(0, room)})
	await(a, b, 1, 1)
	for at := range count {
		a.clear()
		b.clear()
		length := func(k int) int { return lengths[(k+at)%len(lengths)] }
		for k := range count {
			fillBytes(a.b[k*room:][:length(k)], uint64(k+at))
			b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: uint64(k), Local: b.at(k*room, length(k)),
				Context: uint64(k)})
		}
		refuseNext(t, at+1, func() {
			for k := range count {
				a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: uint64(k), Local: a.at(k*room, length(k)),
					Matched: k%5 == 0, Context: uint64(k), More: k < count-1})
			}
			await(a, b, count, count-1)
		})
		for _, e := range a.events {
			refused := e.Err != nil
			if refused != (e.Context == uint64(at)) || refused && !errors.Is(e.Err, unix.EIO) {
				t.Errorf("command %d: %+v", at, e)
			}
		}
		for _, e := range b.events {
			k := int(e.Context)
			if e.Err != nil || k == at || string(b.b[k*room:][:length(k)]) != string(a.b[k*room:][:length(k)]) {
				t.Errorf("command %d: %+v", at, e)
			}
		}
		b.clear()
		if err := b.m.CancelContext(uint64(at)); err != nil {
			t.Fatal(err)
		}
		await(b, b, 1, 1)
		if n := a.stats().Refused; n != uint64(at)+1 {
			t.Fatalf("%d commands are counted as refused, of %d", n, at+1)
		}
	}
	works(t, a, b)
}

// refuseNext has the NIC refuse the command that comes next but so many, in f.
func refuseNext(t *testing.T, n int, f func()) {
	t.Helper()
	file := library(t)
	done, err := step.Count(file, "commands")
	if err = errors.Join(err, step.Set(file, "fault_rc", wire.RcCmdInvalidArg), step.Set(file, "fault_at",
		int(done)+n)); err != nil {
		t.Fatal(err)
	}
	f()
	if err := step.Set(file, "fault_at", 0); err != nil {
		t.Fatal(err)
	}
}

// TestMatchUnknown: events of kinds that nothing expects are counted, and end what they are of where they say it.
func TestMatchUnknown(t *testing.T) {
	a := newMatching(t, MatchConfig{}, 4096)
	x, n := &a.i.match.rx, uint64(0)
	event := func(kind, size uint64, id uint32, last bool) nic.Event {
		k := new(nic.Kept)
		k[1] = kind<<wire.EventTargetLongEventTypeShift | size<<wire.EventTargetLongEventSizeShift
		if last {
			k[wire.EventTargetLongAutoUnlinkedWord] |= 1 << wire.EventTargetLongAutoUnlinkedShift
		}
		k[wire.EventTargetLongBufferIdWord] |= uint64(id) << wire.EventTargetLongBufferIdShift
		k[7] |= wire.RcOk << wire.EventTargetLongReturnCodeShift
		return k.Event()
	}
	id := uint32(a.receive(hw.MatchReceive{From: hw.AnyAddress, Local: a.at(0, 8), Context: 7}))
	for _, kind := range []uint64{wire.EventMatch, wire.EventError, wire.EventTimestamp, 24, 30} {
		x.take(event(kind, wire.EventSizeB16, 0, false))
		x.take(event(kind, wire.EventSizeB64, id, false))
		if n += 2; len(a.events) != 0 || a.stats().Unknown != n {
			t.Fatalf("type %d: %+v, %d of %d counted", kind, a.events, a.stats().Unknown, n)
		}
	}
	x.take(event(wire.EventMatch, wire.EventSizeB64, id, true))
	if len(a.events) != 1 || a.events[0].Context != 7 || !errors.Is(a.events[0].Err, unix.EIO) {
		t.Errorf("the receive: %+v", a.events)
	}
	a.clear()
	id = uint32(a.receive(hw.MatchReceive{From: hw.AnyAddress, Local: a.at(0, 8), Context: 9}))
	before := a.stats().Malformed
	x.take(event(wire.EventAtomic, wire.EventSizeB64, id, true)) // a peer's doing
	if len(a.events) != 1 || a.events[0].Context != 9 || !errors.Is(a.events[0].Err, hw.ErrInvalid) ||
		a.stats().Malformed != before+1 {
		t.Errorf("a receive that an atomic operation finds: %+v", a.events)
	}
	a.clear()
	tx := a.i.match.txOf(a.self)
	a.send(hw.MatchSend{To: a.self, Inject: []byte{1}, Context: 8, More: true}) // it waits for its doorbell
	place := uint32(0)
	for k := range tx.slots {
		if tx.slots[k].kind != sentNone {
			place = uint32(k)
		}
	}
	k := new(nic.Kept)
	k[0] = tx.cookie(place)
	k[1] = wire.EventSend<<wire.EventTargetLongEventTypeShift |
		wire.EventSizeB16<<wire.EventTargetLongEventSizeShift | wire.RcUncor<<wire.EventInitiatorReturnCodeShift
	tx.lock.take()
	tx.event(k.Event())
	tx.lock.keep()
	for end := time.Now().Add(time.Second); len(a.events) == 0 && time.Now().Before(end); {
		a.i.Progress(8)
	}
	a.unknown = n + 2
	if len(a.events) != 1 || a.events[0].Context != 8 || !errors.Is(a.events[0].Err, unix.EIO) {
		t.Errorf("the send: %+v", a.events)
	}
}
