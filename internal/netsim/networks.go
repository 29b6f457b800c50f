package netsim

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// Networks that all-to-alls are tried on and drawn of.

// Units.
const (
	megabit = 1000 * 1000 / 8
	gigabit = 1000 * megabit
	us      = time.Microsecond
	ms      = time.Millisecond
)

// overUDP is what hw/udp makes of the defaults.
func overUDP(a congestion.Algorithm) congestion.Config {
	cfg := congestion.DefaultConfig(1472)
	cfg.Algorithm, cfg.Granularity = a, 50*us
	return cfg
}

// network is a network that an all-to-all is tried on.
type network struct {
	name      string
	file      string                   // of its figure, "": it has none
	slow      func(from, to int) int64 // how many times slower the path is, 0 or 1: not
	strangers *Stranger                // into each port, of all or of the first quarter
	hot       bool                     // the first quarter only
}

const (
	simHosts = 32
	simSlice = 178 * 1472
)

var networks = []network{
	{name: "alike", file: "alike"},
	{name: "20 % of the paths at 1/4", slow: func(from, to int) int64 {
		if (from*7+to*13)%5 == 0 {
			return 4
		}
		return 1
	}},
	{name: "a path of each at 1/8", file: "slow-path", slow: func(from, to int) int64 {
		if to == (from+11)%simHosts {
			return 8
		}
		return 1
	}},
	{name: "hot receivers", hot: true, strangers: &Stranger{Rate: gigabit / 2, On: 20 * ms, Off: 5 * ms}},
	{name: "bursts", file: "bursts", strangers: &Stranger{Rate: gigabit * 9 / 10, On: 5 * ms, Off: 10 * ms}},
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

// engine gives a group what an order needs, and returns the width for [Group.Exchange].
func (o order) engine(g *Group) int {
	cfg := exchange.DefaultConfig(simHosts - 1)
	cfg.Policy, cfg.Chunk = o.policy, 22*1472
	g.Engine(cfg, 0)
	return o.width
}

// Figure is a plot with one panel.
type Figure struct {
	// Name is for a file, Title for people. X and Y are what the axes have.
	Name, Title, X, Y string
	// From is where the X axis begins.
	From float64

	lines func() []Series
}

// Lines computes what the figure shows.
func (f Figure) Lines() []Series { return f.lines() }

// Figures returns the plots of all-to-alls: how much has arrived over time, by three fixed orders and the engine's, and
// of those by flows how many hosts have ended.
func Figures() []Figure {
	var all []Figure
	for _, w := range networks {
		if w.file != "" {
			all = append(all, Figure{
				Name:  "alltoall-" + w.file,
				Title: "all to all of 32 hosts, 1 Gbit/s, 256 KiB a slice: " + w.name,
				X:     "time, ms", Y: "arrived, percent",
				lines: func() []Series { return w.arrivals(orders[:4]) },
			})
		}
	}
	return append(all, flowFigure())
}

// arrivals are the shares of all bytes that have arrived over time in the second operation, by each of the orders: an
// engine has seen the paths then.
func (w network) arrivals(by []order) (lines []Series) {
	const all = simHosts * (simHosts - 1) * simSlice
	for _, o := range by {
		n, g, _, _ := w.build(1)
		width := o.engine(g)
		var points []Point
		n.Every(ms/4, func(now congestion.Time) {
			points = append(points, Point{now.Sub(g.began).Seconds() * 1e3, float64(g.arrived) / all * 100})
		})
		for range 2 {
			points = nil
			g.Exchange(width, func(from, to int) int64 { return simSlice }, 2*time.Second)
		}
		lines = append(lines, Series{Name: o.name, Points: points})
	}
	return lines
}
