package cxi

import (
	"errors"
	"os"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// TestReservedRoom: whatever the size of the event queue, the driver is asked for no more than it reserves, some 3,000
// receives have room reserved, or all that there are, and so have two events more of each message that may wait.
func TestReservedRoom(t *testing.T) {
	for events := 64; events <= maxEvents; events *= 2 {
		for _, receives := range []int{1, 1024, 3000, maxReceives} {
			c := MatchConfig{Events: events, Receives: receives}
			if n := c.sure(); n < min(receives, 3000) || n > receives || c.reserved() > mostReserved {
				t.Errorf("%d events, %d receives: %d have room, %d blocks are reserved", events, receives, n,
					c.reserved())
			}
			if left := c.reserved() - stateEvents - perReceive*c.sure(); left < 2*c.openBlocks() ||
				c.waiting() < min(events, 1700) || c.waiting() > events || c.openBlocks() < c.waiting() {
				t.Errorf("%d events, %d receives: %d may wait, in %d blocks, of which each may need two of %d",
					events, receives, c.waiting(), c.openBlocks(), left)
			}
		}
	}
}

// TestReceivesNoOverrun: many receives find unexpected messages, and none of their events is read as long as there is
// room, and buffers for many messages find more than their events have room for, in the smallest event queue: no event
// is lost, and each message comes once, in order.
func TestReceivesNoOverrun(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1", "WEFT_TEST_CXI_MATCH=hardware")
		return
	}
	const count, long = 300, 30000
	const idle = 3000 // receives that match nothing, so that not all others have room reserved
	for _, c := range []struct {
		what     string
		receives int
		multi    bool
		n        int
	}{
		{"receives", count, false, 8}, {"long receives", count, false, long}, {"many receives", 15360, false, 8},
		{"a buffer for many", count, true, 8}, {"a buffer for many long ones", count, true, long},
	} {
		a := newMatching(t, MatchConfig{Sends: 2 * count}, long)
		b := newMatching(t, MatchConfig{Events: 64, Receives: c.receives, Buffers: 8}, count*c.n)
		sent := min(c.receives, 6*count)
		beyond := sent < c.receives
		if beyond {
			for range idle {
				b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: 1 << 40, Local: b.at(0, 8)})
			}
			if sure := b.i.match.rx.sure; sure < idle || sure >= idle+sent {
				t.Fatalf("%d receives have room reserved", sure)
			}
		}
		if c.n == long {
			sent = 200 // there are 256 ids
		}
		for k := range sent {
			s := hw.MatchSend{To: b.self, Tagged: !c.multi, Context: uint64(k)}
			if c.n == 8 {
				s.Inject = []byte{byte(k), byte(k >> 8)}
			} else {
				s.Local = a.at(0, c.n)
			}
			if !c.multi {
				s.Tag = uint64(k)
			}
			a.send(s)
			a.i.Progress(64)
			b.i.Progress(64)
		}
		want := sent
		if c.multi {
			b.receive(hw.MatchReceive{From: a.self, Multi: true, MinFree: 1, Local: b.at(0, count*c.n), Context: 7})
		} else {
			refused := 0
			for k := range sent { // none of their events is read unless there is no room
				r := hw.MatchReceive{From: a.self, Tagged: true, Tag: uint64(k), Local: b.at(0, c.n),
					Context: uint64(k)}
				if _, err := b.m.PostReceive(&r); errors.Is(err, hw.ErrNoResource) {
					refused++
					b.receive(r)
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if (refused > 0) != beyond {
				t.Errorf("%s: %d were refused at first", c.what, refused)
			}
		}
		await(a, b, sent, want)
		for k, e := range b.events {
			if e.Err != nil || e.Kind != hw.MatchReceived || !c.multi && e.Context != e.Tag || e.Wanted < 2 {
				t.Errorf("%s: %+v", c.what, e)
			}
			if c.multi && c.n == 8 && (b.b[e.Offset] != byte(k) || b.b[e.Offset+1] != byte(k>>8)) {
				t.Errorf("%s: message %d is another", c.what, k)
			}
		}
		s := b.stats()
		if s.Overruns != 0 || len(b.events) != want {
			t.Errorf("%s: %d events, %+v", c.what, len(b.events), s)
		}
		for _, x := range []*matching{a, b} {
			if err := x.i.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestManyLongNoOverrun: long messages come into a buffer for many that is posted, as many as the NIC takes while
// nothing is read: no event is lost, and each message comes once, in order.
func TestManyLongNoOverrun(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1", "WEFT_TEST_CXI_MATCH=hardware")
		return
	}
	const count, size = 250, 300 // there are 256 ids
	a := newMatching(t, MatchConfig{Sends: count, Eager: 193, First: 64}, size)
	b := newMatching(t, MatchConfig{Events: 64, Receives: 1, Eager: 193, First: 64}, count*size)
	b.receive(hw.MatchReceive{From: a.self, Multi: true, MinFree: 1, Local: b.at(0, count*size), Context: 7})
	s := hw.MatchSend{To: b.self, Local: a.at(0, size)}
	a.send(s)
	sent := 1
	for ; sent < count; sent++ { // until the receiver is full
		if err := a.m.PostMatched(&s); errors.Is(err, hw.ErrNoResource) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		a.i.Progress(64)
	}
	if n := b.i.match.rx.events.Unread(1000); n < 64 || sent == count {
		t.Errorf("%d messages, %d events are unread, so that the queue is not full", sent, n)
	}
	await(a, b, sent, sent)
	if s := b.stats(); s.Overruns != 0 {
		t.Errorf("%+v", s)
	}
	for k, e := range b.events {
		if e.Err != nil || e.Kind != hw.MatchReceived || e.Context != 7 || e.Offset != uint64(k*size) {
			t.Errorf("message %d: %+v", k, e)
		}
	}
}

// TestMultiMore: a buffer for many messages is the NIC's when it is posted, with More, too: messages that come before
// the doorbell do not find it with events for which nothing has seen to room.
func TestMultiMore(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1", "WEFT_TEST_CXI_MATCH=hardware")
		return
	}
	const count = 300
	a := newMatching(t, MatchConfig{Sends: count}, 64)
	b := newMatching(t, MatchConfig{Events: 64, Receives: 2, Buffers: 8}, 8*count)
	b.receive(hw.MatchReceive{From: a.self, Multi: true, MinFree: 1, Local: b.at(0, 8*count), More: true})
	sent := 0
	for k := range count { // until the receiver is full
		m := hw.MatchSend{To: b.self, Inject: []byte{byte(k)}}
		if err := a.m.PostMatched(&m); errors.Is(err, hw.ErrNoResource) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		a.i.Progress(64)
		sent++
	}
	await(a, b, sent, sent)
	if s := b.stats(); s.Overruns != 0 || sent < 64 {
		t.Errorf("%d messages, %+v", sent, s)
	}
	for k, e := range b.events {
		if e.Err != nil || b.b[e.Offset] != byte(k) {
			t.Fatalf("message %d: %+v", k, e)
		}
	}
}

// TestListedRoom: buffers for many messages that have waited for a list entry are appended where their events have
// room.
func TestListedRoom(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1", "WEFT_TEST_CXI_MATCH=hardware")
		return
	}
	const events, size = 64, 4096
	a := newMatching(t, MatchConfig{}, 64)
	b := newMatching(t, MatchConfig{Events: events, Receives: 4, Buffers: 8}, 2*size)
	x := &b.i.match.rx
	send := func() {
		a.send(hw.MatchSend{To: b.self, Inject: []byte{1}})
		await(a, a, len(a.events)+1, 0)
	}
	const kept = events / perMessage
	for range kept {
		send()
		b.i.Progress(64)
	}
	if n := x.early.kept.Load(); n != kept {
		t.Fatalf("%d messages are kept", n)
	}
	send() // its event is not read
	x.lock.take()
	for k := range 2 {
		r := hw.MatchReceive{From: a.self, Multi: true, Local: b.at(k*size, size), Context: uint64(k)}
		e, err := b.i.match.entryOf(&r)
		if err == nil {
			e.Memory, err = b.i.match.localOf(&r)
		}
		if err != nil {
			t.Fatal(err)
		}
		e.Length, e.MinFree = size, size-kept+1 // it takes all but the last
		p := x.enter(receivePosted, &e, segmentAddress(&r.Local), size, r.Context)
		p.multi = true
		x.waiting = append(x.waiting, p.id)
	}
	first := x.waiting[0]
	x.probing = x.append(x.receive(first).toAppend())
	x.lock.give()
	x.listed(first)
	if len(x.waiting) != 1 || !x.retries.Load() {
		t.Errorf("%d receives wait, of two for which there is no room", len(x.waiting))
	}
	await(a, b, 0, kept+1)
	for k, e := range b.events {
		if e.Err != nil || e.Kind != hw.MatchReceived || (e.Context == 1) != (k == kept) {
			t.Errorf("message %d: %+v", k, e)
		}
	}
	if s := b.stats(); s.Overruns != 0 || len(x.waiting) != 0 {
		t.Errorf("%d receives wait, %+v", len(x.waiting), s)
	}
}
