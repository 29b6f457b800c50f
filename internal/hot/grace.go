package hot

import (
	"runtime"
	"sync/atomic"
)

// Grace waits until no thread uses any more what it has read in lines of [Peer], so that the memory they point at can
// be given to another peer, or in a [MatchTransport], so that it can be unmapped. Threads mark their epochs with plain
// stores, so the lines, or what leads to the transport, must have been cleared, and then every thread must have passed
// a memory barrier (membarrier), before NewGrace: a thread that reads later finds it clear.
type Grace struct {
	waits []wait
}

// wait is a thread that was posting.
type wait struct {
	reader  *EpochReader
	posting uint64
}

// NewGrace notes which threads are posting now.
func NewGrace() *Grace {
	g := &Grace{}
	for i := range EpochReaders {
		p := EpochReaderAt(i)
		if n := atomic.LoadUint64(&p.Posting); n&1 != 0 {
			g.waits = append(g.waits, wait{p, n})
		}
	}
	return g
}

// Over reports whether all of them have ended that post. Acquire ↔ the
// release at the end of a post.
func (g *Grace) Over() bool {
	for len(g.waits) != 0 {
		w := g.waits[len(g.waits)-1]
		if atomic.LoadUint64(&w.reader.Posting) == w.posting {
			return false
		}
		g.waits = g.waits[:len(g.waits)-1]
	}
	return true
}

// Wait returns when Over is true. The caller has nothing that a post or a poll waits for, but leases that they try.
func (g *Grace) Wait() {
	for !g.Over() {
		runtime.Gosched()
	}
}
