package netsim

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// onePath runs operations of eight hosts at 100 Mbit/s, of which one path is 20 times slower, and returns
// the last one's time in units of what the slow path alone needs.
func onePath(seed uint64, relay int64, slow, operations int) (took float64, reports []exchange.Report) {
	const (
		hosts = 8
		rate  = 100e6 / 8
		slice = 178 * 1472
	)
	n := New(seed)
	s := n.Star(hosts, Link{Rate: rate, Delay: 20 * us, Limit: 256 << 10})
	for i := range s.Up {
		s.Up[i].Limit = 1 << 20
	}
	side := n.Link(Link{Rate: int64(rate) / int64(slow), Delay: 20 * us, Limit: 256 << 10})
	g := n.Group(hosts, overUDP(congestion.Delay), func(from, to int) Route {
		if from == 1 && to == 6 && slow > 1 {
			return Route{s.Up[from], side, s.Down[to]}
		}
		return s.Route(from, to)
	})
	cfg := exchange.DefaultConfig(hosts - 1)
	cfg.Chunk, cfg.Piece = 44*1472, 5*1472
	g.Engine(cfg, relay)
	d := time.Duration(0)
	for range operations {
		d = g.Exchange(0, func(from, to int) int64 { return slice }, 5*time.Second)
	}
	return d.Seconds() / (slice / rate * float64(max(slow, hosts-1))), g.Reports()
}

// TestOneSlowPath: a slow path alone holds an operation up; with relays it takes
// half of the time. Where no path is slow none are used.
func TestOneSlowPath(t *testing.T) {
	for _, c := range []struct {
		relay       int64
		slow, ops   int
		least, most float64
	}{{0, 20, 1, 0.95, 1.2}, {4 << 20, 20, 1, 0, 0.55}, {4 << 20, 20, 2, 0, 0.52}, {4 << 20, 1, 1, 0.95, 1.2}} {
		took, reports := onePath(1, c.relay, c.slow, c.ops)
		relayed, again, twice := uint64(0), uint64(0), uint64(0)
		for _, r := range reports {
			relayed, again, twice = relayed+r.Relayed, again+r.Again, twice+r.Twice
		}
		t.Logf("%+v: %.3f, %d bytes by relays", c, took, relayed)
		if took < c.least || took > c.most || again+twice != 0 || (relayed != 0) != (c.relay != 0 && c.slow > 1) {
			t.Errorf("%+v: %.3f of the bound, %d bytes by relays, %d pieces again, %d twice",
				c, took, relayed, again, twice)
		}
	}
}
