package cxi

import (
	"errors"
	"os"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/step"
)

// TestRestrictedClass: reads and writes without an order, and restricted gets of long messages, go under a profile of
// their own type of traffic, between others that do not; without one they go with those.
func TestRestrictedClass(t *testing.T) {
	for what, c := range map[string]struct {
		settings string
		own      bool
	}{"profiles enough": {"get=0", true}, "one profile": {"get=0 lcids=1", false}} {
		t.Run(what, func(t *testing.T) {
			if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
				alone(t, c.settings)
				return
			}
			count := func(name string) uint64 {
				n, err := step.Count(library(t), name)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			const sends = 110
			x := newMatching(t, MatchConfig{Restricted: true, Sends: sends}, 200000)
			tx, each := &x.i.match.tx, 4
			if c.own {
				each = 9 // with a change of the profile
			}
			if slots := int(tx.cq.HalfSlots()) / 2; slots < each*(sends+receiverPlaces) {
				t.Errorf("the queue has %d slots", slots)
			}
			x.expose(7, hw.RemoteRead|hw.RemoteWrite)
			for round := range 3 {
				restricted, unclassed := count("restricted"), count("unclassed")
				x.long(uint64(round))
				want := uint64(0)
				if round > 0 { // the first has the list made
					want = 1
				}
				for _, p := range []hw.MatchTransfer{{Inject: make([]byte, 100)}, {Local: x.at(0, 300)},
					{Local: x.at(0, 300), Get: true}} {
					for _, p.Ordered = range []bool{false, true} {
						p.To, p.Key, p.Offset = x.self, 7, 1000
						if err := x.transfer(p); err != nil {
							t.Fatal(err)
						}
						if !p.Ordered {
							want++
						}
					}
				}
				got, without := count("restricted")-restricted, count("unclassed")-unclassed
				if got < want || got > want+1 || c.own != (without == 0) || !c.own && without != got {
					t.Errorf("round %d: %d restricted commands, not %d, of them %d under another's profile", round, got,
						want, without)
				}
			}
			works(t, x, x.peerIn(0, MatchConfig{}, 4096))
		})
	}
}

// TestRestrictedGivenUp: interfaces in networks of their own, whose service shares no profiles, give up those of
// restricted commands when one that is opened finds none for all else, unless they have posted by them; all work.
func TestRestrictedGivenUp(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1 lcids=6 exclusive=1")
		return
	}
	config := MatchConfig{VNIs: []uint16{10}}
	uses := func(x *matching) uint64 { // it has posted restricted commands under another's profile
		t.Helper()
		before, err := step.Count(library(t), "unclassed")
		if err != nil {
			t.Fatal(err)
		}
		if err := x.transfer(hw.MatchTransfer{To: x.self, Key: 7, Inject: make([]byte, 100)}); err != nil {
			t.Fatal(err)
		}
		n, err := step.Count(library(t), "unclassed")
		if err != nil {
			t.Fatal(err)
		}
		return n - before
	}
	var list []*matching
	for k := range 4 { // of 6 profiles the domain has one, and they have each two as long as there are some
		x := newMatching(t, config, 4096)
		x.expose(7, hw.RemoteRead|hw.RemoteWrite)
		if list = append(list, x); k == 0 && uses(x) != 0 {
			t.Fatal("the first has no profile of restricted commands")
		}
	}
	for k, x := range list {
		if got := uses(x); (got == 0) != (k == 0) {
			t.Errorf("interface %d: %d restricted commands are under the profile of all else", k, got)
		}
	}
	works(t, list[0], list[3])
	works(t, list[2], list[1])
	if i, err := domain(t).Open(Config{Match: &config}); !errors.Is(err, hw.ErrNoResource) {
		t.Errorf("with a profile more than there are: %v, %v", i, err)
	}
}
