package cxi

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/step"
)

// long sends a long message from x to itself, and returns how often it was told to try again.
func (x *matching) long(seed uint64) (again int) {
	x.t.Helper()
	const n = 100000
	x.clear()
	fillBytes(x.b[:n], seed)
	x.receive(hw.MatchReceive{From: x.self, Local: x.at(n, n)})
	s := hw.MatchSend{To: x.self, Local: x.at(0, n)}
	for err := x.m.PostMatched(&s); err != nil; err = x.m.PostMatched(&s) {
		if !errors.Is(err, hw.ErrNoResource) || again > 1e6 {
			x.t.Fatal(err)
		}
		again++
		x.i.Progress(8)
	}
	await(x, x, 2, 2)
	for _, e := range x.events {
		if e.Err != nil {
			x.t.Fatalf("%+v", e)
		}
	}
	if !bytes.Equal(x.b[:n], x.b[n:]) {
		x.t.Fatal("other bytes have come")
	}
	return again
}

// TestMatchRestricted: a long message is read by restricted gets, of which the sender learns by a notice, if it has
// asked for that, and the receiver's NIC does not get it by itself; without room for a list it goes as others do.
func TestMatchRestricted(t *testing.T) {
	for _, c := range []struct {
		name, settings string
		asks           bool
		state          uint32 // of the list
		restricted     uint64 // gets
	}{
		{"asked for", "get=0", true, sourceReady, 1},
		{"not asked for", "get=0", false, sourceNone, 0},
		{"got by the NIC", "", true, sourceReady, 0},
		{"no room", "get=0 ptes=6", true, sourceRefused, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
				alone(t, c.settings)
				return
			}
			x := newMatching(t, MatchConfig{Restricted: c.asks}, 200000)
			x.long(1)
			done, err := step.Count(library(t), "restricted")
			if err != nil {
				t.Fatal(err)
			}
			x.long(2)
			now, err := step.Count(library(t), "restricted")
			if err != nil || now-done != c.restricted {
				t.Errorf("%d restricted gets: %v", now-done, err)
			}
			lac := x.i.match.lacOf(x)
			if got := x.i.match.shared.restricted[lac].state.Load(); got != c.state {
				t.Errorf("the list is in state %d, not %d", got, c.state)
			}
		})
	}
}

// lacOf is the address context of the memory of x.
func (m *matcher) lacOf(x *matching) uint32 {
	s := x.at(0, 8)
	memory, err := segmentMemory(&s, false, maxMatched)
	if err != nil {
		x.t.Fatal(err)
	}
	return memory.LAC
}

// TestMatchRestrictedFaults has the NIC refuse each command that makes a list once: the message goes by either
// protocol, and so does the next.
func TestMatchRestrictedFaults(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "get=0 fabric=-1")
		return
	}
	for at := 1; at <= 4; at++ { // the entry for gets of NICs, the state of inline messages, the list, and its entry
		x := newMatching(t, MatchConfig{Restricted: true}, 200000)
		failed := false
		refuseNext(t, at+1, func() { // behind the receive
			defer func() { failed = t.Failed() }()
			x.long(uint64(at))
		})
		if failed {
			t.Fatalf("command %d is refused", at)
		}
		x.long(99)
		if s := x.stats(); s.Refused != 1 || s.Malformed != 0 {
			t.Errorf("command %d is refused: %+v", at, s)
		}
	}
}

// TestMatchRestrictedNotices: notices of lists that a peer makes up end nothing.
func TestMatchRestrictedNotices(t *testing.T) {
	x := newMatching(t, MatchConfig{Restricted: true}, 200000)
	x.long(1)
	before := x.stats().Malformed
	x.lie(x, proto.Rendezvous{ID: 77}.Done())
	for x.stats().Malformed == before {
		x.i.Progress(8)
	}
	x.long(2)
}
