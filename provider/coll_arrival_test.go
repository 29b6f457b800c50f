package provider

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// arrivalCounter opens one.
func arrivalCounter(t *testing.T, d *Domain, events fi.CntrEvents) *cq.Counter {
	t.Helper()
	c, err := d.OpenCounter(&fi.CntrAttr{Events: events}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the counter: %v", err)
		}
	})
	return c
}

// arrivedOf is of how many other ranks a rank has all bytes.
func (w *vectorWork) arrivedOf(rank int) (n uint64) {
	a := &w.args[rank]
	for r := range w.args {
		from, end := a.ResultDispls[r]*a.Elem, (a.ResultDispls[r]+w.gets[rank][r])*a.Elem
		if r != rank && bytes.Equal(w.out[rank][from:end], w.want[rank][from:end]) {
			n++
		}
	}
	return n
}

// TestArrivals: no peer counts before its bytes are in place, over each way that payloads take.
func TestArrivals(t *testing.T) {
	set := func(change func(*config.Config)) func(*testing.T) *circle {
		return func(t *testing.T) *circle { return newCircle(t, newBench(t, change, collHints()), 4) }
	}
	for name, open := range map[string]func(*testing.T) *circle{
		"memory":   set(nil),
		"messages": set(func(c *config.Config) { c.UseCMA = config.No }),
		"closed":   set(func(c *config.Config) { c.UnexpectedBytes = 1 }),
		"ordered":  set(func(c *config.Config) { c.Sched = config.Yes }),
		"udp":      func(t *testing.T) *circle { return apartCircle(t, 4, nil) },
		"put":      set(func(c *config.Config) { c.Sched, c.AllToAll = config.Yes, "put" }),
		"get":      set(func(c *config.Config) { c.Sched, c.AllToAll = config.Yes, "get" }),
		"get over UDP": func(t *testing.T) *circle {
			return apartCircle(t, 4, func(c *config.Config) { c.AllToAll = "get" })
		},
		"put over UDP": func(t *testing.T) *circle {
			return apartCircle(t, 4, func(c *config.Config) { c.AllToAll = "put" })
		},
		"relays": func(t *testing.T) *circle {
			c := apartCircle(t, 4, nil)
			for _, s := range c.sides {
				s.ep.coll.UseRelays()
			}
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t)
			r := rand.New(rand.NewPCG(8, 3))
			groups := c.joinAll(everyRank(4))
			counter := arrivalCounter(t, c.sides[2].domain, fi.CntrEventsComp)
			relayed := uint64(0)
			for range 12 {
				c.arrivals(newVectorWork(r, groups), counter)
				for _, g := range groups {
					relayed += g.Report().Relayed
				}
			}
			if name == "relays" && relayed == 0 {
				t.Error("nothing went through relays")
			}
		})
	}
}

// arrivals runs an operation in which rank 2 counts.
func (c *circle) arrivals(w *vectorWork, counter *cq.Counter) {
	c.t.Helper()
	counter.Set(0)
	w.args[2].Arrived = counter
	none := uint64(0)
	for r, n := range w.gets[2] {
		if r != 2 && n == 0 {
			none++
		}
	}
	fired := 0
	for k := range uint64(3) {
		counter.Arm(&cq.Trigger{Threshold: k + 1, Fire: func() {
			if n := w.arrivedOf(2); n <= k { // in the thread that counts
				c.t.Errorf("%d peers count, the bytes of %d are here", k+1, n)
			}
			fired++
		}})
	}
	for i := range w.args {
		if err := c.sides[i].ep.AllToAllV(&w.args[i]); err != nil {
			c.t.Fatal(err)
		}
		if i == 2 && counter.Hot().Value < none { // of progress by the post
			c.t.Errorf("%d of %d peers without bytes count", counter.Hot().Value, none)
		}
	}
	c.completed(everyRank(4), 4)
	if n := counter.Read(); n != 3 || fired != 3 || counter.ReadErr() != 0 {
		c.t.Errorf("%d peers count, %d as errors", n, counter.ReadErr())
	}
}

// TestArrivalsFail: the peers of which bytes are missing when the operation fails count as errors.
func TestArrivalsFail(t *testing.T) {
	c := apartCircle(t, 3, nil)
	groups := c.joinAll(everyRank(3))
	counter := arrivalCounter(t, c.sides[0].domain, fi.CntrEventsComp)
	counts, displs := []uint64{5, 5, 0}, []uint64{0, 5, 10}
	in, out := make([]byte, 10), make([]byte, 10)
	a := AllToAllVArgs{Buf: baseOf(in), Counts: counts, Displs: displs, Result: baseOf(out), ResultCounts: counts,
		ResultDispls: displs, Elem: 1, Group: groups[0].Addr(), Context: 5, Arrived: counter}
	if err := c.sides[0].ep.AllToAllV(&a); err != nil {
		t.Fatal(err)
	}
	groups[1].Close()
	if err := c.outcome(0); err != fi.ECONNRESET {
		t.Errorf("the operation ends with %v", err)
	}
	if counter.Read() != 1 || counter.ReadErr() != 1 {
		t.Errorf("%d peers count, %d as errors", counter.Read(), counter.ReadErr())
	}
	a.Arrived = arrivalCounter(t, c.sides[0].domain, fi.CntrEventsBytes)
	wantErrno(t, c.sides[0].ep.AllToAllV(&a), fi.EINVAL, "a counter of bytes")
	other := newBench(t, nil, collHints())
	a.Arrived = arrivalCounter(t, other.domain, fi.CntrEventsComp)
	wantErrno(t, c.sides[0].ep.AllToAllV(&a), fi.EDOMAIN, "a counter of another domain")
}
