package order

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestStoreReleases passes messages through a word: the reader must see the
// whole of what was written before the word.
func TestStoreReleases(t *testing.T) {
	const rounds = 200000
	var word, back uint64
	var body [8]uint64
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := uint64(1); i <= rounds; i++ {
			for atomic.LoadUint64(&back) != i-1 {
			}
			for k := range body {
				body[k] = i
			}
			Store64(&word, i)
		}
	})
	for i := uint64(1); i <= rounds; i++ {
		for atomic.LoadUint64(&word) != i {
		}
		for k := range body {
			if body[k] != i {
				t.Fatalf("round %d: word %d is of round %d", i, k, body[k])
			}
		}
		Store64(&back, i)
	}
	wg.Wait()
}

// TestFence is the store buffer litmus test: of two threads that each store and
// then read the other's word, one must see the other.
func TestFence(t *testing.T) {
	const rounds = 100000
	var x, y [rounds]uint32
	var sawX, sawY [rounds]bool
	var wg sync.WaitGroup
	var turn atomic.Uint32
	run := func(mine, other *[rounds]uint32, saw *[rounds]bool) func() {
		return func() {
			for i := range rounds {
				turn.Add(1)
				for turn.Load() < uint32(2*i+2) {
				}
				Store32(&mine[i], 1)
				Fence()
				saw[i] = atomic.LoadUint32(&other[i]) == 1
			}
		}
	}
	wg.Go(run(&x, &y, &sawY))
	wg.Go(run(&y, &x, &sawX))
	wg.Wait()
	for i := range rounds {
		if !sawX[i] && !sawY[i] {
			t.Fatalf("round %d: neither saw the other", i)
		}
	}
}
