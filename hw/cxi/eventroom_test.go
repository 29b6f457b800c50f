package cxi

import (
	"os"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// TestReservedRoom: whatever the size of the event queue, the driver is asked for no more than it reserves, and some
// 3,000 receives have room reserved, or all that there are.
func TestReservedRoom(t *testing.T) {
	for events := 64; events <= maxEvents; events *= 2 {
		for _, receives := range []int{1, 1024, 3000, maxReceives} {
			c := MatchConfig{Events: events, Receives: receives}
			if n := c.sure(); n < min(receives, 3000) || n > receives || c.reserved() > mostReserved {
				t.Errorf("%d events, %d receives: %d have room, %d blocks are reserved", events, receives, n,
					c.reserved())
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
			for k := range sent { // none of their events is read unless there is no room
				b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: uint64(k), Local: b.at(0, c.n),
					Context: uint64(k)})
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
