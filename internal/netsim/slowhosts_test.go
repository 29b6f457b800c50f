package netsim

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// slowHosts runs operations of eight hosts with links of 100 Mbit/s, of which two have a quarter and two a half of it
// both ways, and returns their times in units of what the slowest links need. Receivers have clocks of their own.
func slowHosts(policy exchange.Policy, slice int64, clock func(from, to int) Clock, operations int) (took []float64) {
	const (
		hosts = 8
		rate  = 100 * megabit
	)
	n := New(1)
	s := n.Star(hosts, Link{Rate: rate, Delay: 20 * us, Limit: 256 << 10})
	for i, slow := range []int64{1, 4, 1, 2, 1, 4, 1, 2} {
		s.Up[i].Rate, s.Up[i].Limit = rate/slow, 1<<20
		s.Down[i].Rate = rate / slow
	}
	g := n.Group(hosts, overUDP(congestion.Delay), s.Route)
	for _, m := range g.members {
		for _, f := range m.pairs {
			f.flow.Clock = clock(f.from.rank, f.to.rank)
		}
	}
	cfg := exchange.DefaultConfig(hosts - 1)
	cfg.Policy, cfg.Chunk, cfg.Piece = policy, 44*1472, 5*1472
	g.Engine(cfg, 4<<20)
	bound := float64(slice) * (hosts - 1) / (rate / 4)
	for range operations {
		d := g.Exchange(0, func(from, to int) int64 { return slice }, 5*time.Second)
		took = append(took, d.Seconds()/bound)
	}
	return took
}

// TestSlowHosts: where links of hosts are slow both ways, acknowledgements wait behind data, for which no sender
// becomes slower: its receiver says when packets have arrived. Clocks that differ by 20 parts of a million make it
// little worse. Means of later operations, over slices of four lengths: chance does less to these. Acknowledgements
// alone take 4 %.
func TestSlowHosts(t *testing.T) {
	same := func(int, int) Clock { return Clock{} }
	own := func(from, to int) Clock {
		return Clock{Later: time.Duration(from-to) * 1700 * ms, Faster: float64(from-to) * 3}
	}
	for _, c := range []struct {
		name        string
		policy      exchange.Policy
		clock       func(from, to int) Clock
		first, most float64
	}{
		{"adaptive", exchange.Adaptive, same, 1.25, 1.105},
		{"balanced", exchange.Balanced, same, 1.25, 1.135},
		{"adaptive, own clocks", exchange.Adaptive, own, 1.25, 1.13},
	} {
		const lengths, operations = 4, 5
		first, later := 0.0, 0.0
		for k := range int64(lengths) {
			for op, took := range slowHosts(c.policy, (170+4*k)*1472, c.clock, operations) {
				if op == 0 {
					first += took / lengths
				} else {
					later += took / lengths / (operations - 1)
				}
			}
		}
		t.Logf("%s: %.3f of the bound, later %.3f", c.name, first, later)
		if first > c.first || later > c.most {
			t.Errorf("%s: %.3f of the bound, later %.3f; want %v, %v", c.name, first, later, c.first, c.most)
		}
	}
}
