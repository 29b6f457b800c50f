package netsim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// onePath runs operations of eight hosts at 100 Mbit/s, of which one path is so many times slower, and returns
// the last one's time in units of what the slow path alone needs.
func onePath(slice, relay int64, slow, operations int) (took float64, reports []exchange.Report) {
	all, reports := onePathBy(exchange.Adaptive, 0, slice, relay, slow, operations)
	return all[operations-1], reports
}

// onePathBy is onePath of a policy, where links let bursts of so many bytes through. It returns the times of all
// operations.
func onePathBy(
	policy exchange.Policy, burst, slice, relay int64, slow, operations int,
) (took []float64, reports []exchange.Report) {
	const (
		hosts = 8
		rate  = 100e6 / 8
	)
	n := New(1)
	s := n.Star(hosts, Link{Rate: rate, Delay: 20 * us, Burst: burst, Limit: 256 << 10})
	for i := range s.Up {
		s.Up[i].Limit = 1 << 20
	}
	side := n.Link(Link{Rate: int64(rate) / int64(slow), Delay: 20 * us, Burst: burst, Limit: 256 << 10})
	g := n.Group(hosts, overUDP(congestion.Delay), func(from, to int) Route {
		if from == 1 && to == 6 && slow > 1 {
			return Route{s.Up[from], side, s.Down[to]}
		}
		return s.Route(from, to)
	})
	cfg := exchange.DefaultConfig(hosts - 1)
	cfg.Policy, cfg.Chunk, cfg.Piece = policy, 44*1472, 5*1472
	g.Engine(cfg, relay)
	for range operations {
		d := g.Exchange(0, func(from, to int) int64 { return slice }, 5*time.Second)
		took = append(took, d.Seconds()/(float64(slice)/rate*float64(max(slow, hosts-1))))
	}
	return took, g.Reports()
}

// TestOneSlowPathStays: under each policy all operations but the first go around a slow path, also where links are
// token buckets, whose bursts make the path seem fast.
func TestOneSlowPathStays(t *testing.T) {
	for _, policy := range []exchange.Policy{
		exchange.Adaptive, exchange.Greedy, exchange.Threshold, exchange.Balanced,
	} {
		for _, burst := range []int64{0, 16 << 10} {
			took, _ := onePathBy(policy, burst, 174*1472, 4<<20, 20, 6)
			t.Logf("%v, bursts of %d: %.2f", policy, burst, took)
			if took[0] > 0.8 || slices.Max(took[1:]) > 0.52 {
				t.Errorf("%v, bursts of %d: %.2f of the direct bound, want 0.8, then 0.52", policy, burst, took)
			}
		}
	}
}

// TestOneSlowPath: a slow path alone holds an operation up; with relays it takes
// half of the time. Where no path is slow none are used. Means over slices of four lengths: chance does less to these.
func TestOneSlowPath(t *testing.T) {
	for _, c := range []struct {
		relay       int64
		slow, ops   int
		least, most float64
	}{{0, 20, 1, 0.95, 1.2}, {4 << 20, 20, 1, 0, 0.55}, {4 << 20, 20, 2, 0, 0.52}, {4 << 20, 1, 1, 0.95, 1.2}} {
		const lengths = 4
		mean, relayed, again, twice := 0.0, uint64(0), uint64(0), uint64(0)
		for k := range int64(lengths) {
			took, reports := onePath((170+4*k)*1472, c.relay, c.slow, c.ops)
			mean += took / lengths
			for _, r := range reports {
				relayed, again, twice = relayed+r.Relayed, again+r.Again, twice+r.Twice
			}
		}
		t.Logf("%+v: %.3f, %d bytes by relays", c, mean, relayed)
		if mean < c.least || mean > c.most || again+twice != 0 || (relayed != 0) != (c.relay != 0 && c.slow > 1) {
			t.Errorf("%+v: %.3f of the bound, %d bytes by relays, %d pieces again, %d twice",
				c, mean, relayed, again, twice)
		}
	}
}

// slowPaths are a network of eight hosts at 100 Mbit/s of which paths are slower: how many times, by both ends.
type slowPaths map[[2]int]int64

// randomPaths has one slow path at least.
func randomPaths(r *rand.Rand) slowPaths {
	paths, share := slowPaths{{1, 4}: 20}, []float64{0.02, 0.1, 0.3}[r.IntN(3)]
	for from := range 8 {
		for to := range 8 {
			if from != to && r.Float64() < share {
				paths[[2]int{from, to}] = 4 + r.Int64N(27)
			}
		}
	}
	return paths
}

// took is how long the third operation takes. Sources may know which paths of relays are slow.
func (p slowPaths) took(known bool) time.Duration {
	const hosts, rate = 8, 100 * megabit
	n := New(1)
	s := n.Star(hosts, Link{Rate: rate, Delay: 20 * us, Limit: 256 << 10})
	middle := map[[2]int]*Link{}
	for path, times := range p {
		middle[path] = n.Link(Link{Rate: rate / times, Delay: 20 * us, Limit: 256 << 10})
	}
	for i := range s.Up {
		s.Up[i].Limit = 1 << 20
	}
	g := n.Group(hosts, overUDP(congestion.Delay), func(from, to int) Route {
		if l := middle[[2]int{from, to}]; l != nil {
			return Route{s.Up[from], l, s.Down[to]}
		}
		return s.Route(from, to)
	})
	if known {
		g.refuses = func(_, relay, target int) bool { return middle[[2]int{relay, target}] != nil }
	}
	cfg := exchange.DefaultConfig(hosts - 1)
	cfg.Chunk, cfg.Piece = 44*1472, 5*1472
	g.Engine(cfg, 4<<20)
	d := time.Duration(0)
	for range 3 {
		d = g.Exchange(0, func(from, to int) int64 { return simSlice }, 20*time.Second)
	}
	return d
}

// TestRelaysKnown: relays are chosen by what the source knows of its own paths and each relay of its own. To know all
// paths at the source would gain little: less than 3 % in the mean of networks.
func TestRelaysKnown(t *testing.T) {
	r, sum := rand.New(rand.NewPCG(1, 31)), 0.0
	const networks = 60
	for range networks {
		p := randomPaths(r)
		own, all := p.took(false), p.took(true)
		t.Logf("%d slow paths: %v, %v with all known", len(p), own, all)
		sum += math.Log(own.Seconds()/all.Seconds()) / networks
	}
	if mean := math.Exp(sum); mean > 1.03 {
		t.Errorf("%.3f times as long as with all paths known", mean)
	}
}
