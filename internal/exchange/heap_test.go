package exchange

import (
	"math/rand/v2"
	"testing"
)

// TestHeap holds a heap to a list of keys: the least is first, whatever was put in, changed and taken out.
func TestHeap(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(50)
		known := newRecords(n)
		for i := range n {
			known.add(int32(i), &peer{})
		}
		h, keys := newHeap(known), map[int32]uint64{}
		for range 500 {
			i, key := int32(r.IntN(n)), r.Uint64N(100)<<placeBits
			key |= uint64(i)
			switch _, is := keys[i]; {
			case !is:
				h.push(i, key)
				keys[i] = key
			case r.IntN(2) == 0:
				h.set(i, key)
				keys[i] = key
			default:
				h.remove(i)
				delete(keys, i)
			}
			least, first := ^uint64(0), int32(-1)
			for i, key := range keys {
				if !h.has(i) {
					t.Fatalf("seed %d: peer %d is not in the heap", seed, i)
				}
				if key < least {
					least, first = key, i
				}
			}
			if h.len() != len(keys) {
				t.Fatalf("seed %d: %d peers, want %d", seed, h.len(), len(keys))
			}
			if first < 0 {
				continue
			}
			if i, key := h.least(); i != first || key != least {
				t.Fatalf("seed %d: peer %d with key %d is first, want peer %d with %d", seed, i, key, first, least)
			}
		}
	}
}
