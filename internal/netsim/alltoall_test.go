package netsim

import (
	"os"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

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

// try runs operations one after another on a network and returns the medians: the time, in
// units of what the links need that are alike, and its ratio to the bound.
func (w network) try(seed uint64, o order, operations int) (took, ratio float64, dropped int64) {
	n, g, s, strangers := w.build(seed)
	width := o.engine(g)
	var times, ratios []time.Duration
	for range operations {
		began := n.Now()
		d := g.Exchange(width, func(from, to int) int64 { return simSlice }, 2*time.Second)
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
