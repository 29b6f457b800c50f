package cxi

import (
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
			x := newMatching(t, MatchConfig{Restricted: true}, 200000)
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
