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
	}
	return p
}

// beginAccess is beginPost of a one-sided operation. One of the fi_inject forms that no counter counts completes
// nowhere, so when does not matter, and it has no flags.
func beginAccess(at uintptr) *hot.Post {
	p := beginPost(at)
	if p.Kind&hot.PostInject != 0 && endpoint(p.EP).WriteCntr == 0 {
		p.Flags = 0
	}
	return p
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

// countMessage is countThread of one operation of some bytes, which are counted in the word behind it.
func countMessage(lines uintptr, thread uint32, what uintptr, bytes uint64) {
	if thread >= stats.Lines-1 {
		countThread(lines, thread, what, 1)
		countThread(lines, thread, what+1, bytes)
		return
	}
	words := (*[2]uint64)(pointer(lines + (uintptr(thread)*stats.LineWords+what)*8))
	order.Store64(&words[0], atomic.LoadUint64(&words[0])+1)
	order.Store64(&words[1], atomic.LoadUint64(&words[1])+bytes)
}

// The bytes of messages are counted in the word behind them.
const (
	_ = uint(stats.ThreadInlineBytes - stats.ThreadInline - 1)
	_ = uint(stats.ThreadInline + 1 - stats.ThreadInlineBytes)
	_ = uint(stats.ThreadBounceBytes - stats.ThreadBounce - 1)
	_ = uint(stats.ThreadBounce + 1 - stats.ThreadBounceBytes)
)
