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
	b := newMatching(t, MatchConfig{Events: 64, unreserved: true}, 4096)
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

// flood has a peer get so many notices, of messages that it does not have: it has few.
func (x *matching) flood(to *matching, count int) {
	x.t.Helper()
	at, err := x.i.match.at(to.self, proto.IndexSource)
	if err != nil {
		x.t.Fatal(err)
	}
	for k := range count {
		tx := &x.i.match.tx
		tx.lock.take()
		tx.q.Put(&nic.Transfer{Message: nic.Message{To: at, MatchBits: proto.Matched(uint32(64 + k))},
			Initiator: x.i.match.self, EQ: tx.events.number})
		tx.release(false)
		x.i.Progress(64)
	}
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
	for round := range 3 { // the NIC counts in one bit
		a.clear()
		b.clear()
		h.flood(a, 400)
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

// TestOverrunStripes: if the queue of the first stripe overruns, messages of another stripe end that await a notice
// there, or that their data is read; one that has its own stripe's answer alone is not concerned.
func TestOverrunStripes(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1")
		return
	}
	const sends, size = 8, 40000
	a, h := newMatching(t, MatchConfig{Stripes: 2, Sends: sends}, size), newMatching(t, MatchConfig{}, 8)
	b, c := a.peerIn(1, MatchConfig{}, size), a.peerIn(0, MatchConfig{}, 4096)
	works(t, a, b)
	a.clear()
	b.clear()
	a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: 1 << 20, Local: a.at(0, size)}) // admits its address context
	b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: 1 << 20, Local: b.at(0, size)})
	await(a, b, 1, 1)
	a.clear()
	b.clear()
	messages := []hw.MatchSend{{Local: a.at(0, 8), Matched: true}, {Local: a.at(0, size)}, {Local: a.at(0, 8)}}
	for k, s := range messages {
		s.To, s.Tagged, s.Tag, s.Context = b.self, true, uint64(k), uint64(k)
		a.send(s)
	}
	tx := a.i.match.txs[1]
	acked := func() (n int) {
		for k := range tx.slots {
			if tx.slots[k].awaitsNotice() && tx.slots[k].acked {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(10 * time.Second); acked() < 2 || len(a.events) < 1; a.i.Progress(8) {
		if time.Now().After(end) {
			t.Fatalf("%d messages have arrived, %+v", acked(), a.events)
		}
	}
	h.flood(a, 400)
	b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: 1, Local: b.at(0, size)})
	await(b, b, 1, 1) // the data is not read, as there is no room for the event of that
	for range sends { // not all answers find room
		a.send(hw.MatchSend{To: c.self, Inject: []byte{1}, Context: 4})
	}
	a.send(hw.MatchSend{To: b.self, Inject: []byte{1}, Context: 3})
	await(a, a, len(messages)+1+sends, len(messages)+1+sends)
	for _, e := range a.events {
		lost := errors.Is(e.Err, unix.EIO)
		if !lost && e.Err != nil || e.Context < 4 && lost != (e.Context < 2) {
			t.Errorf("%+v", e)
		}
	}
	if n := a.stats().Overruns; n != 1 || !tx.doubtUntil.IsZero() || tx.inFlight() != 0 {
		t.Errorf("%d overruns, %d commands are in flight", n, tx.inFlight())
	}
	for k := range uint64(3) {
		if k != 1 {
			b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: k, Local: b.at(0, size)})
		}
	}
	await(b, b, 3, 3)
	works(t, a, b)
}

// fill posts messages to a peer, of each kind in turn, until there is no room for any, and returns of which they are.
func (x *matching) fill(to *matching, kinds []hw.MatchSend) (posted []int) {
	x.t.Helper()
	for before := -1; before < len(posted); {
		before = len(posted)
		for k, s := range kinds {
			s.To = to.self
			err := x.m.PostMatched(&s)
			if err == nil {
				posted = append(posted, k)
			} else if !errors.Is(err, hw.ErrNoResource) {
				x.t.Fatal(err)
			}
		}
	}
	return posted
}

// TestStripesNoOverrun: a sender's queues have room for what may come of all that it has posted by all stripes, while
// it makes no progress.
func TestStripesNoOverrun(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1")
		return
	}
	const size = 20000
	for _, stripes := range []int{2, maxStripes} {
		a := newMatching(t, MatchConfig{Stripes: stripes, Sends: 64}, size)
		var peers []*matching
		for k := range stripes { // that of the first stripe is the last
			peers = append(peers, a.peerIn((k+1)%stripes, MatchConfig{}, size))
		}
		a.send(hw.MatchSend{To: peers[0].self, Local: a.at(0, size)}) // admits its address context
		peers[0].receive(hw.MatchReceive{From: a.self, Local: peers[0].at(0, size)})
		await(a, peers[0], 1, 1)
		a.clear()
		peers[0].clear()
		kinds := []hw.MatchSend{{Local: a.at(0, 8), Matched: true}, {Tagged: true, Local: a.at(0, size)},
			{Local: a.at(0, size)}, {Local: a.at(0, 8)}}
		posted, total := make([][]int, stripes), 0
		for k, b := range peers {
			list := kinds[:3] // those with a notice
			if k == stripes-1 {
				list = kinds
			}
			posted[k] = a.fill(b, list)
			total += len(posted[k])
		}
		shared := &a.i.match.shared
		left := shared.matches.free.Len() + shared.untagged.free.Len() + shared.tagged.free.Len()
		if stripes == maxStripes && left > 0 || total < 2*64 {
			t.Fatalf("%d stripes: %d messages, %d ids are left", stripes, total, left)
		}
		for k, b := range peers {
			for _, kind := range posted[k] {
				b.receive(hw.MatchReceive{From: a.self, Tagged: kinds[kind].Tagged, Local: b.at(0, size)})
			}
			await(b, b, len(posted[k]), len(posted[k]))
		}
		await(a, a, total, total)
		for _, x := range append(peers, a) {
			for _, e := range x.events {
				if e.Err != nil {
					t.Fatalf("%+v", e)
				}
			}
		}
		if n := a.stats().Overruns; n != 0 {
			t.Errorf("%d stripes: %d overruns", stripes, n)
		}
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
