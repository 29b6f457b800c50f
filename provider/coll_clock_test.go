package provider

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/nettest"
)

// TestExchangeClockSet sets the wall clock forward and back by an hour in the middle of all-to-alls over UDP, under
// each policy: they end, soon and whole, and what is reported of them is of a clock that is not set.
func TestExchangeClockSet(t *testing.T) {
	set := nettest.Clock(t)
	const slice, most = 1 << 20, 30 * time.Second
	for _, policy := range []string{"adaptive", "greedy", "threshold", "balanced"} {
		t.Run(policy, func(t *testing.T) {
			c := apartCircle(t, 3, func(c *config.Config) { c.SchedPolicy = policy })
			h := &hosts{circle: c, each: 1, groups: c.joinAll(everyRank(3))}
			r := rand.New(rand.NewPCG(1, 36))
			within := 0 // operations that were under way
			for i, step := range []time.Duration{time.Hour, -time.Hour, -time.Hour, time.Hour} {
				w := h.newSlices(r, slice)
				w.post(everyRank(3)...)
				h.until("a third", func() bool { return w.received(0) >= slice })
				if !w.over() {
					within++
				}
				set(step)
				h.until("the operation's end", w.over)
				w.check(-1)
				for rank, g := range h.groups {
					rep := g.Report()
					if rep.Took <= 0 || rep.Took > most || rep.Forged != 0 {
						t.Errorf("operation %d, rank %d took %v, %d forged", i, rank, rep.Took, rep.Forged)
					}
				}
				p, err := c.sides[0].ep.Path(c.sides[0].addrs[1])
				if err != nil || p.Base <= 0 || p.Smoothed > most || p.Age > most || p.Age < 0 {
					t.Errorf("operation %d: path %+v, %v", i, p, err)
				}
			}
			if within == 0 {
				t.Error("all operations were over before the clock was set")
			}
		})
	}
}
