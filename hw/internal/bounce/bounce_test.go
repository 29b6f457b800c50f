package bounce

import "testing"

// TestPools takes every buffer once and gives it back.
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
			if n >= 0 && (seen[n] || n >= int32(count)) {
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
		delete(seen, -1)
		for n := range seen {
			p.Put(n)
		}
	}
}
