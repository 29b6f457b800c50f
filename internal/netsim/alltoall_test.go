package netsim

import (
	"os"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// network is a network that an all-to-all is tried on.
type network struct {
	name      string
	slow      func(from, to int) int64 // how many times slower the path is, 0 or 1: not
	strangers *Stranger                // into each port, of all or of the first quarter
	hot       bool                     // the first quarter only
}

const (
	simHosts = 32
	simSlice = 178 * 1472
)

var networks = []network{
	{name: "alike"},
	{name: "20 % of the paths at 1/4", slow: func(from, to int) int64 {
		if (from*7+to*13)%5 == 0 {
			return 4
		}
		return 1
	}},
	{name: "a path of each at 1/8", slow: func(from, to int) int64 {
		if to == (from+11)%simHosts {
			return 8
		}
		return 1
	}},
	{name: "hot receivers", hot: true, strangers: &Stranger{Rate: gigabit / 2, On: 20 * ms, Off: 5 * ms}},
	{name: "bursts", strangers: &Stranger{Rate: gigabit * 9 / 10, On: 5 * ms, Off: 10 * ms}},
}

// build makes a group on a network, and what is needed to compute the bound.
func (w network) build(seed uint64) (*Net, *Group, *Star, []*Stranger) {
	n := New(seed)
	s := n.Star(simHosts, Link{Rate: gigabit, Delay: 5 * us, Limit: 128 << 10})
	for i := range s.Up {
		s.Up[i].Limit = 1 << 20
	}
	middle := map[[2]int]*Link{}
	routes := func(from, to int) Route {
		if w.slow == nil || w.slow(from, to) <= 1 {
			return s.Route(from, to)
		}
		l := middle[[2]int{from, to}]
		if l == nil {
			l = n.Link(Link{Rate: gigabit / w.slow(from, to), Delay: us, Limit: 128 << 10})
			middle[[2]int{from, to}] = l
		}
		return Route{s.Up[from], l, s.Down[to]}
	}
	g := n.Group(simHosts, overUDP(congestion.Delay), routes)
	var all []*Stranger
	if w.strangers != nil {
		for i := range s.Down {
			if !w.hot || i < simHosts/4 {
				all = append(all, n.Stranger(*w.strangers, Route{s.Down[i]}))
			}
		}
	}
	return n, g, s, all
}

// units is the time of an operation in units of the homogeneous bound.
func units(d time.Duration) float64 {
	return float64(d) / float64(time.Second) / (float64((simHosts-1)*simSlice) / float64(gigabit))
}

// bound is what the links alone let an operation take that began at a time: the slices of
// all others have to go through what strangers leave of each port.
func bound(began congestion.Time, strangers []*Stranger) time.Duration {
	alone := time.Duration(float64((simHosts-1)*simSlice) / float64(gigabit) * float64(time.Second))
	worst := alone
	for _, s := range strangers {
		need, at := alone, began // of the port's time
		for _, on := range s.Times {
			if on.To <= at {
				continue
			}
			if free := on.From.Sub(at); free > 0 {
				if free >= need {
					break
				}
				need -= free
				at = on.From
			}
			left := 1 - float64(s.Rate)/float64(gigabit)
			shared := time.Duration(float64(on.To.Sub(at)) * left)
			if shared >= need {
				at, need = at.Add(time.Duration(float64(need)/left)), 0
				break
			}
			need -= shared
			at = on.To
		}
		worst = max(worst, at.Add(need).Sub(began))
	}
	return worst
}

// order is a way to carry an all-to-all out.
type order struct {
	name   string
	width  int // of a fixed order, 0: the engine's
	policy exchange.Policy
}

var orders = []order{
	{"step", 1, 0}, {"eights", 8, 0}, {"all at once", simHosts - 1, 0},
	{"adaptive", 0, exchange.Adaptive}, {"greedy", 0, exchange.Greedy},
	{"threshold", 0, exchange.Threshold}, {"balanced", 0, exchange.Balanced},
}

// try runs operations one after another on a network and returns the medians: the time, in
// units of what the links need that are alike, and its ratio to the bound.
func (w network) try(seed uint64, o order, operations int) (took, ratio float64, dropped int64) {
	n, g, s, strangers := w.build(seed)
	cfg := exchange.DefaultConfig(simHosts - 1)
	cfg.Policy, cfg.Chunk = o.policy, 22*1472
	g.Engine(cfg, 0)
	var times, ratios []time.Duration
	for range operations {
		began := n.Now()
		d := g.Exchange(o.width, func(from, to int) int64 { return simSlice }, 2*time.Second)
		times = append(times, d)
		ratios = append(ratios, time.Duration(float64(d)/float64(bound(began, strangers))*1e6))
	}
	for _, l := range s.Down {
		dropped += l.Dropped
	}
	return units(Quantile(times, 0.5)), float64(Quantile(ratios, 0.5)) / 1e6, dropped
}

// TestRows compares all orders on all networks, which takes minutes: NETSIM_ROWS=1 runs it.
func TestRows(t *testing.T) {
	if os.Getenv("NETSIM_ROWS") == "" {
		t.Skip("takes minutes: NETSIM_ROWS=1")
	}
	for _, w := range networks {
		for _, o := range orders {
			took, ratio, dropped := w.try(1, o, 5)
			t.Logf("%-26s %-12s %.2f, %.2f of the bound, dropped %d", w.name, o.name, took, ratio, dropped)
		}
	}
}

// TestExchangeRows: the engine is within a few percent of the bound where paths are alike or
// slow, and not slower than the best fixed order.
func TestExchangeRows(t *testing.T) {
	for _, c := range []struct {
		network int
		most    float64
	}{{0, 1.10}, {2, 1.12}} {
		w := networks[c.network]
		took, _, dropped := w.try(1, orders[3], 2)
		t.Logf("%s: %.2f, dropped %d", w.name, took, dropped)
		if took > c.most || dropped != 0 {
			t.Errorf("%s: %.2f, at most %v; dropped %d", w.name, took, c.most, dropped)
		}
	}
}

// TestWords: a word that waits in a long queue goes once, and one that is dropped goes again.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		limit, carried int64 // bytes of the queue, packets
	}{{0, 100 + 1}, {50 * 1500, 50 + 1}} {
		n := New(1)
		l := n.Link(Link{Rate: 1e6, Delay: us, Limit: c.limit}) // the queue lasts for 150 or 75 ms
		g := n.Group(2, overUDP(congestion.Delay), func(from, to int) Route {
			if from == 1 {
				return Route{l}
			}
			return nil
		})
		g.Engine(exchange.DefaultConfig(1), 0)
		for range 100 {
			p := n.packet()
			p.Size = 1500
			n.send(p, Route{l}, sink{})
		}
		f := g.members[0].pairs[0]
		f.answer(exchange.Action{Kind: exchange.SendWord})
		if n.Run(time.Second); f.taken != 1 || l.Packets != c.carried {
			t.Errorf("queue of %d bytes: %d words are there, %d packets carried, want %d",
				c.limit, f.taken, l.Packets, c.carried)
		}
	}
}
