package onesided

import (
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// seeds is how many programs of chance a test runs: n, or a few.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return n / 10
	}
	return n
}

// TestModel runs programs of chance, of all operations, against plain copies of the regions: ranges and keys that are
// refused, regions without rights, in parts, for single use, not for all peers, and no room now and then.
func TestModel(t *testing.T) {
	for seed := range seeds(300) {
		h := newModel(t, seed)
		for range 150 {
			h.step()
		}
		h.complete()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestClosed closes regions while what was read of them waits for room: the rest is refused, and nothing of it comes.
func TestClosed(t *testing.T) {
	refused := 0
	for seed := range seeds(200) {
		h := newModel(t, seed)
		h.full = 2
		for range 20 {
			for range 10 {
				h.step()
			}
			if m := h.regions[h.r.IntN(5)]; !m.closed {
				h.close(m)
			}
		}
		for _, op := range h.ops {
			if op.closed {
				refused++
			}
		}
		h.complete()
	}
	if refused == 0 {
		t.Error("nothing was refused later")
	}
}

// TestLost has initiators go while results wait for them: these are dropped, and others get theirs.
func TestLost(t *testing.T) {
	for seed := range seeds(200) {
		h := newModel(t, seed)
		h.full = 2
		h.writes.Store(nil) // what is not sent to them is not counted
		for src := range hw.Source(sources - 1) {
			for range 40 {
				h.step()
			}
			h.gone[src] = true
			if h.r.IntN(2) == 0 {
				h.target.SourceLost(src)
				h.target.DropReplies(src)
			}
		}
		for range 20 {
			h.step()
		}
		h.complete()
	}
}
