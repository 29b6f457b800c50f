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
	c.open()
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
	row := []uint64{1<<32 - 2} // more numbers than fit into one's places
	for n := uint64(1 << 32); len(row) <= cacheWays; n++ {
		if c.first(n) == c.first(row[0]) {
			row = append(row, n)
		}
	}
	known := 0
	for _, n := range row {
		c.store(n, 7, n+1)
	}
	for _, n := range row {
		if what, ok := c.find(n, 7); ok {
			if known++; what != n+1 {
				t.Errorf("%#x at %#x", what, n)
			}
		}
	}
	if known > cacheWays || known == 0 {
		t.Errorf("%d of %d numbers are known in %d places", known, len(row), cacheWays)
	}
	for _, a := range []uint64{uint64(fi.AddrUnspec), 1<<32 - 1, 1 << 40} {
		if _, ok := c.find(a, 0); ok {
			t.Errorf("address %#x is found, and was not stored", a)
		}
	}
}

// TestAddressCacheSpread: peers of one machine are all known at once, whichever bits of their addresses differ; so are
// indices in a row, and numbers that a multiplier alone puts into one place.
func TestAddressCacheSpread(t *testing.T) {
	word := func(node, process uint64) uint64 { return node<<9 | process } // of a Slingshot NIC
	for what, number := range map[string]func(n uint64) uint64{
		"one process on each node":     func(n uint64) uint64 { return word(0x2000+n, 17) },
		"eight processes on each node": func(n uint64) uint64 { return word(0x2000+n/8, n%8*64+5) },
		"nodes in groups of 2048":      func(n uint64) uint64 { return word(n<<11, 17) },
		"one node":                     func(n uint64) uint64 { return word(0x2000, n) },
		"indices":                      func(n uint64) uint64 { return n },
		"high bits":                    func(n uint64) uint64 { return n << 55 },
		"one place by the multiplier":  func(n uint64) uint64 { return n * 0xf1de83e19937733d },
	} {
		const peers = cacheSlots / 4
		var c addressCache
		c.open()
		for n := range uint64(peers) {
			c.store(number(n), 3, n)
		}
		known := 0
		for n := range uint64(peers) {
			if at, ok := c.find(number(n), 3); ok && at == n {
				known++
			}
		}
		if known < peers*95/100 {
			t.Errorf("%s: %d of %d are known (seed %#x)", what, known, peers, c.seed)
		}
	}
}
