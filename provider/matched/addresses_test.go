package matched

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// TestAddressCache: threads find at each address what was stored for it in that generation, or nothing.
func TestAddressCache(t *testing.T) {
	var c addressCache
	at := func(a, generation uint64) uint64 {
		return a*1000003 + generation
	}
	var all sync.WaitGroup
	found := make([]int, 4)
	for n := range found {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 1))
			for range 20000 {
				a, generation := uint64(r.IntN(100)), uint64(r.IntN(3))
				if to, ok := c.find(a, generation); !ok {
					c.store(a, generation, at(a, generation))
				} else if found[n]++; to != at(a, generation) {
					t.Errorf("address %d, generation %d: %#x", a, generation, to)
					return
				}
			}
		})
	}
	all.Wait()
	for n, count := range found {
		if count == 0 {
			t.Errorf("thread %d has found nothing", n)
		}
	}
	c.store(1<<32-2, 7, 5)
	if to, ok := c.find(1<<32-2, 7); !ok || to != 5 {
		t.Errorf("a high address: %d, %v", to, ok)
	}
	if _, ok := c.find(1<<32-2, 8); ok {
		t.Error("an address is found in another generation")
	}
	other := uint64(1 << 32)
	for c.slot(other) != c.slot(1<<32-2) {
		other++
	}
	c.store(other, 7, 6)
	if _, ok := c.find(1<<32-2, 7); ok {
		t.Error("an address is found in another's place")
	}
	for _, a := range []uint64{uint64(fi.AddrUnspec), 1<<32 - 1, 1 << 40} {
		if _, ok := c.find(a, 0); ok {
			t.Errorf("address %#x is found, and was not stored", a)
		}
	}
}
