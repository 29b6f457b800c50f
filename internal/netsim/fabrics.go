package netsim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weft-fabric/weft/internal/exchange"
)

// Networks of flows that all-to-alls of many hosts are tried on and drawn of.

// fabricCase is a network of flows.
type fabricCase struct {
	name string
	port func(rank int) Port
	path func(from, to int) float64
}

// fabricCases are networks of flows. Each has ports of 1 Gbit/s and paths that are not slower, but for what it says.
var fabricCases = []fabricCase{
	{"alike", func(int) Port { return Port{Rate: gigabit} }, fastPaths},
	{"a tenth of the hosts at 1/4", func(rank int) Port {
		if rank%10 == 3 {
			return Port{Rate: gigabit / 4}
		}
		return Port{Rate: gigabit}
	}, fastPaths},
	{"a fifth of the paths at 1/4", func(int) Port { return Port{Rate: gigabit} }, func(from, to int) float64 {
		if (from*7+to*13)%5 == 0 {
			return gigabit / 4
		}
		return 0
	}},
	{"a quarter of the receivers hot", func(rank int) Port {
		p := Port{Rate: gigabit}
		if rank%4 == 1 {
			p.Share, p.On, p.Period, p.Phase = 0.5, 20*ms, 25*ms, time.Duration(rank*7919%25)*ms
		}
		return p
	}, fastPaths},
}

func fastPaths(int, int) float64 { return 0 }

// partnersOf chooses so many partners for each host, or one less for a few: those of random permutations, both ways.
// With as many as there are others all are.
func partnersOf(hosts, count int) func(rank int, give func(to int)) {
	if count == hosts-1 {
		return func(rank int, give func(to int)) {
			for to := range hosts {
				if to != rank {
					give(to)
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	all := make([][]int32, hosts)
	for range count / 2 {
		for from, to := range r.Perm(hosts) {
			if from != to && !slices.Contains(all[from], int32(to)) {
				all[from], all[to] = append(all[from], int32(to)), append(all[to], int32(from))
			}
		}
	}
	return func(rank int, give func(to int)) {
		for _, to := range all[rank] {
			give(int(to))
		}
	}
}

// run makes hosts that exchange slices with their partners, once. It returns how long that took, and the bound.
func (c *fabricCase) run(hosts int, slice int64, partners func(rank int, give func(to int))) (
	f *Fabric, took, bound time.Duration,
) {
	f = New(1).Fabric(hosts, exchange.DefaultConfig(hosts-1), FlowLinks{
		Path: c.path, Delay: 10 * us,
		Ports: func(rank int) (up, down Port) {
			up, down = c.port(rank), c.port(rank)
			up.Period = 0
			return up, down
		},
	})
	took, bound = f.Exchange(func(rank int, give func(to int, bytes int64)) {
		partners(rank, func(to int) { give(to, slice) })
	}, time.Minute)
	return f, took, bound
}

// Of the figure of flows.
const (
	drawnHosts    = 1000
	drawnPartners = 128
	drawnSlice    = 128 << 10
)

// flowFigure is the plot of all-to-alls by flows: how many hosts have ended over time, on each network.
func flowFigure() Figure {
	return Figure{
		Name: "alltoall-flows",
		Title: fmt.Sprintf("all to all of %d hosts with %d partners each, 1 Gbit/s, %d KiB a slice, by flows",
			drawnHosts, drawnPartners, drawnSlice>>10),
		X: "time, in units of what ports and paths take", Y: "hosts that have ended, percent", From: 0.6,
		lines: func() (lines []Series) {
			for i := range fabricCases {
				lines = append(lines, fabricCases[i].ends(drawnHosts, drawnPartners, drawnSlice))
			}
			return lines
		},
	}
}

// ends is the share of the hosts that have ended over time, in percent; time is in units of the bound.
func (c *fabricCase) ends(hosts, count int, slice int64) Series {
	f, _, bound := c.run(hosts, slice, partnersOf(hosts, count))
	var points []Point
	for i, took := range slices.Sorted(slices.Values(f.Took)) {
		points = append(points, Point{took.Seconds() / bound.Seconds(), float64(i+1) / float64(hosts) * 100})
	}
	return Series{Name: c.name, Points: points}
}
