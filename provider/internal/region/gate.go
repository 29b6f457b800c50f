package region

import (
	"runtime"
	"sync/atomic"
)

// Gate counts the accesses to a region that are under way, so that closing it waits for them. The zero gate is open.
// Its methods may be called from any thread.
type Gate struct {
	// n is the number of accesses, plus closed once closing began. Added
	// to by accessing and by closing threads; sequentially consistent.
	n atomic.Int64
}

const closed = -1 << 62

// Enter begins an access. False: the region is closed.
func (g *Gate) Enter() bool {
	if g.n.Add(1) > 0 {
		return true
	}
	g.n.Add(-1)
	return false
}

// Leave ends an access that Enter has begun.
func (g *Gate) Leave() { g.n.Add(-1) }

// Shut admits no further access and waits for those in progress. They copy a few
// megabytes at most and wait for nothing themselves.
func (g *Gate) Shut() {
	g.n.Add(closed)
	for g.n.Load() != closed {
		runtime.Gosched()
	}
}
