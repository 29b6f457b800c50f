package dataplane

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
)

// resume makes the thread an epoch reader: it marks the thread's line (hot.EpochReader) while the thread uses what it
// reads in lines of peers. False: the thread has no line, and must not read those. That the store is seen before the
// lines are read needs no fence: a thread that reclaims memory has all others pass a barrier.
func resume(t *hot.Thread) bool {
	line := (*hot.EpochReader)(pointer(t.Line))
	if line == nil {
		return false
	}
	turn(line)
	return true
}

// pause ends what resume began. Release: what was read and written before is done.
func pause(t *hot.Thread) { turn((*hot.EpochReader)(pointer(t.Line))) }

// turn makes a thread's word odd, or even again.
func turn(line *hot.EpochReader) { order.Store64(&line.Posting, line.Posting+1) }

// beginPost begins a post, or goes on with one. The thread has a line.
func beginPost(at uintptr) *hot.Post {
	p := (*hot.Post)(pointer(at))
	if p.Step == stepBegin {
		t := (*hot.Thread)(pointer(p.Self))
		p.Thread = t.Number - 1
		turn((*hot.EpochReader)(pointer(t.Line)))
		if p.Kind&hot.PostInject != 0 {
			uncounted(p)
		}
	}
	return p
}

// uncounted drops the flags of a post of the fi_inject forms where no counter counts it: such a post completes nowhere,
// so when does not matter.
func uncounted(p *hot.Post) {
	if ep := endpoint(p.EP); ep.TxCntr == 0 && ep.WriteCntr == 0 {
		p.Flags = 0
	}
}

// endPost ends what beginPost has begun, unless the shim is to do something for the post that uses what was read.
func endPost(at, code uintptr) uintptr {
	if code < hot.PostPath {
		pause((*hot.Thread)(pointer((*hot.Post)(pointer(at)).Self)))
	}
	return code
}

// countThread adds to a thread's line of an endpoint's counters, which begin at lines. Threads for which there is none
// left share the last.
func countThread(lines uintptr, thread uint32, what uintptr, n uint64) {
	if thread >= stats.Lines-1 {
		atomic.AddUint64((*uint64)(pointer(lines+((stats.Lines-1)*stats.LineWords+what)*8)), n)
		return
	}
	word := (*uint64)(pointer(lines + (uintptr(thread)*stats.LineWords+what)*8))
	order.Store64(word, atomic.LoadUint64(word)+n)
}
