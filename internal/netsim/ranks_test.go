package netsim

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// TestRanksOfHosts: four ranks on each of four hosts share its link, and one path between two hosts may be slow. The
// ranks do not know of each other's flows, which costs more than hosts of one rank lose: the bounds here are
// those of payload, with a margin for what chance does. Nothing is lost, and what an operation learns helps the next.
func TestRanksOfHosts(t *testing.T) {
	const hosts, ranks, slice = 4, 4, 178 * 1472
	for _, c := range []struct {
		mbit, slow   int64
		first, later float64 // of the bound
	}{{25, 1, 1.55, 1.4}, {25, 4, 1.5, 1.35}, {25, 8, 1.27, 1.15}, {100, 1, 1.4, 1.25}, {100, 8, 1.3, 1.18}} {
		rate := c.mbit * 1e6 / 8
		n := New(1)
		s := n.Star(hosts, Link{Rate: rate, Delay: 20 * us, Limit: 256 << 10})
		for i := range s.Up {
			s.Up[i].Limit = 4 << 20
		}
		memory := n.Link(Link{Rate: gigabit, Delay: us})
		side := n.Link(Link{Rate: rate / c.slow, Delay: 20 * us, Limit: 256 << 10})
		g := n.Group(hosts*ranks, overUDP(congestion.Delay), func(from, to int) Route {
			from, to = from/ranks, to/ranks
			switch {
			case from == to:
				return Route{memory}
			case from == 1 && to == 3 && c.slow > 1:
				return Route{s.Up[from], side, s.Down[to]}
			}
			return s.Route(from, to)
		})
		cfg := exchange.DefaultConfig(hosts*ranks - 1)
		cfg.Chunk = 44 * 1472
		g.Engine(cfg, 0)
		bound := float64(ranks*ranks*slice) / float64(rate) * float64(max(hosts-1, c.slow))
		for i := range 3 {
			took := g.Exchange(0, func(from, to int) int64 { return slice }, time.Minute).Seconds() / bound
			most := c.later
			if i == 0 {
				most = c.first
			}
			t.Logf("%d Mbit/s, a path at 1/%d, operation %d: %.2f", c.mbit, c.slow, i, took)
			if took > most {
				t.Errorf("that is more than %v", most)
			}
		}
	}
}
