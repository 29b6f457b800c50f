package pages

import (
	"fmt"
	"os"
	"sync"
)

// Where less than leastDense of a huge page is there, the kernel fills the rest with zeros, and the process grows. A
// few buffers that are used again and again are worth it, and so are the ends of large ones in a process that is large;
// a small buffer in each 2 MiB is not.

const (
	// leastGrowth is by how many bytes every process may grow for such pages.
	leastGrowth = 16 << 20
	// growthShare is which part of its own memory a process may grow by, where that is more.
	growthShare = 8
)

// growth is by how much a process has grown for huge pages that were there in small part only.
type growth struct {
	limit func() int // bytes; immutable

	// taken by threads that move memory: the background's goroutine and those that register a region
	mu    sync.Mutex
	pages map[uint64]int
	sum   int
}

// grown is that of this process.
var grown = &growth{limit: func() int { return growthLimit(ownMemory()) }}

func growthLimit(own int) int { return max(leastGrowth, own/growthShare) }

// take adds n bytes for the huge page at an address, false if that would be too many. Pages that the process has
// unmapped since, or of which it has given most back, do not count any more.
func (g *growth) take(at uint64, n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(at) // moved before, and sparse again
	if limit := g.limit(); g.sum+n > limit {
		for page := range g.pages {
			if missing, err := absent(page); err != nil || missing > Size-leastDense {
				g.remove(page)
			}
		}
		if g.sum+n > limit {
			return false
		}
	}
	if g.pages == nil {
		g.pages = map[uint64]int{}
	}
	g.pages[at] = n
	g.sum += n
	return true
}

// giveBack is the opposite: the page at an address was not moved.
func (g *growth) giveBack(at uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(at)
}

// remove forgets a page. The caller has mu.
func (g *growth) remove(at uint64) {
	g.sum -= g.pages[at]
	delete(g.pages, at)
}

// ownMemory is how many bytes of the process are in memory and no file's or segment's; 0 where it is not known.
func ownMemory() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident, shared int
	if n, _ := fmt.Sscan(string(text), &size, &resident, &shared); n != 3 {
		return 0
	}
	return max(0, resident-shared) * os.Getpagesize()
}
