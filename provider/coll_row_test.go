package provider

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/config"
)

// rowOf is the entry of the other host's member in the first rank's row, for an engine that has ended its last
// operation so long ago, 0: none.
func (h *hosts) rowOf(ended time.Duration) (queue time.Duration, ok bool) {
	h.t.Helper()
	g := h.groups[0]
	e := leasedOf(h.sides[0].ep)
	e.rx.acquire()
	defer e.rx.give()
	x := &collExchange{c: e.collective}
	if ended != 0 {
		x.ended = e.now().Add(-ended)
	}
	queue, _, ok = x.row(g, g.peerOf(1))
	return queue, ok
}

// TestRow: an operation begins with what the connection's statistics say of a path, as long as that is new: younger
// than the operation before.
func TestRow(t *testing.T) {
	h := newHosts(t, 1, nil)
	w := h.newSlices(rand.New(rand.NewPCG(1, 37)), 300_000)
	w.post(0, 1)
	h.until("the operation's end", w.over)
	for end := time.Now().Add(time.Minute); ; {
		// A busy machine may take longer than statistics stay new.
		_, fresh := h.rowOf(time.Hour)
		p, err := h.sides[0].ep.Path(h.sides[0].addr[&h.sides[1].side])
		if err != nil {
			t.Fatal(err)
		}
		if fresh != (p.Age < rowAge) && p.Age < rowAge/2 {
			t.Errorf("an age of %v is new: %v", p.Age, fresh)
		}
		if fresh {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the statistics of a connection are never new")
		}
		w = h.newSlices(rand.New(rand.NewPCG(1, 37)), 300_000)
		w.post(0, 1)
		h.until("the operation's end", w.over)
	}
	if _, ok := h.rowOf(time.Nanosecond); ok {
		t.Error("statistics count that are older than the operation before")
	}
	time.Sleep(rowAge + rowAge/4)
	if _, ok := h.rowOf(time.Hour); ok {
		p, _ := h.sides[0].ep.Path(h.sides[0].addr[&h.sides[1].side])
		if p.Age > rowAge {
			t.Errorf("statistics count that are %v old", p.Age)
		}
	}
}

// TestRowProbes: probes keep the row new where nothing else goes.
func TestRowProbes(t *testing.T) {
	h := newHosts(t, 1, func(c *config.Config) { c.Probe, c.ProbeInterval = true, 20*time.Millisecond })
	for end := time.Now().Add(3 * rowAge); time.Now().Before(end); {
		h.progress()
	}
	h.until("a row", func() bool {
		_, ok := h.rowOf(time.Hour)
		return ok
	})
}
