package netsim

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// Ranks of the hosts in the tests below.
const (
	rankHosts = 4
	ranksEach = 4
)

// ranksOfHosts runs three all-to-alls one after another of four ranks on each of four hosts with links of so many
// Mbit/s, among which the path from the second host to the last one is so many times slower. It returns their times, in
// units of what the link takes that needs longest, of payload. If the ranks do not share, they know nothing of each
// other's flows.
func ranksOfHosts(mbit, slow, slice int64, share bool) (took [3]float64) {
	rate := mbit * 1e6 / 8
	n := New(1)
	s := n.Star(rankHosts, Link{Rate: rate, Delay: 20 * us, Limit: 256 << 10})
	for i := range s.Up {
		s.Up[i].Limit = 4 << 20
	}
	memory := n.Link(Link{Rate: 10 * gigabit, Delay: us})
	side := n.Link(Link{Rate: rate / slow, Delay: 20 * us, Limit: 256 << 10})
	host := func(rank int) int { return rank / ranksEach }
	g := n.Group(rankHosts*ranksEach, overUDP(congestion.Delay), func(from, to int) Route {
		from, to = host(from), host(to)
		switch {
		case from == to:
			return Route{memory}
		case from == 1 && to == rankHosts-1 && slow > 1:
			return Route{s.Up[from], side, s.Down[to]}
		}
		return s.Route(from, to)
	})
	cfg := exchange.DefaultConfig(rankHosts*ranksEach - 1)
	cfg.Chunk = 44 * 1472
	g.Engine(cfg, 0)
	if share {
		g.Hosts(host)
	}
	bound := float64(ranksEach*ranksEach*slice) / float64(rate) * float64(max(rankHosts-1, slow))
	for i := range took {
		took[i] = g.Exchange(0, func(from, to int) int64 { return slice }, time.Minute).Seconds() / bound
	}
	return took
}

// TestRanksOfHosts: ranks of a host that count their flows in common are nowhere slower than those that do not, but for
// what chance does. Means over slices of two lengths: chance does less to these. What an operation learns helps the
// next.
func TestRanksOfHosts(t *testing.T) {
	for _, c := range []struct {
		mbit, slow   int64
		first, later float64 // of the bound, at most
		gain         float64 // of the later ones to those of ranks that do not share, at most
	}{
		{25, 1, 1.4, 1.25, 1.06}, {25, 8, 1.28, 1.13, 1.05}, {100, 1, 1.25, 1.14, 1.02}, {100, 8, 1.3, 1.16, 1.05},
		{1000, 1, 1.13, 1.12, 1.05},
	} {
		const lengths = 2
		var took [2][3]float64
		for k := range int64(lengths) {
			for i, share := range []bool{false, true} {
				for op, of := range ranksOfHosts(c.mbit, c.slow, (170+8*k)*1472, share) {
					took[i][op] += of / lengths
				}
			}
		}
		t.Logf("%d Mbit/s, a path at 1/%d: %.3f, each for itself %.3f", c.mbit, c.slow, took[1], took[0])
		later := [2]float64{(took[0][1] + took[0][2]) / 2, (took[1][1] + took[1][2]) / 2}
		if took[1][0] > c.first || later[1] > c.later {
			t.Errorf("%d Mbit/s, a path at 1/%d: more than %v and %v", c.mbit, c.slow, c.first, c.later)
		}
		if took[1][0] > 1.06*took[0][0] || later[1] > c.gain*later[0] {
			t.Errorf("%d Mbit/s, a path at 1/%d: more than 1.06 and %v of what each takes for itself",
				c.mbit, c.slow, c.gain)
		}
	}
}
