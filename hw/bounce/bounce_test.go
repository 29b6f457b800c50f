package bounce

import (
	"sync"
	"testing"
)

// TestPools takes every buffer once, whichever way, and gives it back.
func TestPools(t *testing.T) {
	var p Pools
	const count, stripes = 26, 4
	p.Open(count, stripes)
	if p.Stripes() != stripes {
		t.Errorf("%d stripes", p.Stripes())
	}
	for range 3 {
		seen := map[int32]bool{}
		take := func(n int32) bool {
			if n >= 0 && (seen[n] || n >= int32(count+ForGets(count))) {
				t.Fatalf("buffer %d is given out", n)
			}
			seen[n] = n >= 0
			return n >= 0
		}
		for s := range stripes {
			for take(p.Take(s)) {
			}
		}
		if len(seen)-1 != count {
			t.Errorf("%d buffers of stripes, want %d", len(seen)-1, count)
		}
		for take(p.TakeForGet()) {
		}
		if len(seen)-1 != count+ForGets(count) {
			t.Errorf("%d buffers in all, want %d", len(seen)-1, count+ForGets(count))
		}
		delete(seen, -1)
		for n := range seen {
			p.Put(n)
		}
	}
}

// TestGetsOfThreads has threads take and give back: no buffer is two threads' at once.
func TestGetsOfThreads(t *testing.T) {
	var p Pools
	p.Open(16, 1)
	var owner [16 + 4]int
	var wg sync.WaitGroup
	for id := 1; id <= 4; id++ {
		wg.Go(func() {
			for range 20000 {
				n := p.TakeForGet()
				if n < 0 {
					continue
				}
				if owner[n] != 0 {
					t.Errorf("buffer %d is another thread's", n)
					return
				}
				owner[n] = id
				owner[n] = 0
				p.Put(n)
			}
		})
	}
	wg.Wait()
}
