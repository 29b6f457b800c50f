package copies

import (
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// Rule says when the other way is taken, and when it is tried.
type Rule struct {
	one   uintptr // mem.Strings, mem.PastCaches, mem.Vectors
	other uintptr
	least uintptr // bytes; shorter payload goes one way
	// of copies: those before the first trial, at least as many as a trial has; those from one to the next; and those
	// of a trial, of which the second half counts
	first, period, trial uint64
	// the other way is taken where num times its cost is less than den times that of the one
	num, den uint64
}

// Rules. A trial of In has more copies than a stripe has buffers in most cases.
var (
	In = Rule{
		one: mem.Strings, other: mem.PastCaches, least: 4 << 10,
		first: 256, period: 8192, trial: 128, num: 3, den: 1,
	}
	Out = Rule{
		one: mem.Vectors, other: mem.Strings, least: OutLeast,
		first: 256, period: 2048, trial: 32, num: 16, den: 15,
	}
)

// OutLeast is the least number of bytes for which rule [Out] chooses.
const OutLeast = 16 << 10

// Copy copies n bytes from one address to another, which do not overlap, by the way that c has chosen. The rule is the
// same each time, and c is the caller's alone meanwhile. Address to is a multiple of 16 with rule [In].
func (r *Rule) Copy(c *hot.Copies, to, from, n uintptr) {
	if !mem.HasWays {
		mem.Stream(unsafe.Slice((*byte)(at(&to)), n), unsafe.Slice((*byte)(at(&from)), n))
		return
	}
	way := r.one
	if n < r.least {
		mem.CopyBy(to, from, n, way)
		return
	}
	other, cost := r.next(c)
	if other {
		way = r.other
	}
	if cost == nil {
		mem.CopyBy(to, from, n, way)
		return
	}
	learn(cost, uint64(mem.CopyBy(to, from, n, way|mem.Timed))<<20/uint64(n))
}

// at views an address. The detour through memory shows vet that this is no arithmetic on a Go pointer.
func at(addr *uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(addr)) }

// next chooses how the next payload is copied, the other way or not, and returns where the time of that is kept,
// nil: it is not timed. Timed are the second half of a trial, and as many copies as a trial has before it.
func (r *Rule) next(c *hot.Copies) (other bool, cost *uint64) {
	n := (c.Count + r.period - r.first) % r.period
	c.Count++
	if n == r.trial {
		c.Taken = 0
		if c.Other*r.num < c.Cost*r.den {
			c.Taken = 1
		}
	}
	taken, counts := c.Taken, n >= r.period-r.trial
	if n < r.trial {
		taken, counts = taken^1, n >= r.trial/2
	}
	switch {
	case !counts:
		return taken != 0, nil
	case taken != 0:
		return true, &c.Other
	}
	return false, &c.Cost
}

// learn takes the ticks that a copy has taken for each MiB into a mean, in which one that was interrupted counts for
// little.
func learn(cost *uint64, ticks uint64) {
	if *cost == 0 {
		*cost = max(ticks, 1)
		return
	}
	*cost = max((*cost*3+min(ticks, *cost*4))/4, 1)
}
