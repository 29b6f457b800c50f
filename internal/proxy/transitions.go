package proxy

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// keptTransitions is how many of its last transitions a thread remembers.
const keptTransitions = 512

// transitions are the last changes of a progress thread between idle and
// active, for the dump and for traces. One thread writes, any reads.
type transitions struct {
	// last are times, in ns of the system's monotonic clock, shifted left by one;
	// bit 0 is set if the thread became active then. Number n is at n modulo the
	// length. Written by the thread (release), read by any (acquire).
	last [keptTransitions]atomic.Uint64
	// count is how many there were. Written by the thread after the entry of last
	// (release), read by any (acquire).
	count atomic.Uint64
	// Where the clock of package time stood when the system's did at origin; set
	// before the first.
	began  time.Time
	origin int64
}

func (r *transitions) start() {
	var ts unix.Timespec
	r.began = time.Now()
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // always there
	r.origin = ts.Nano()
}

// add is called by the thread.
func (r *transitions) add(now time.Time, active bool) {
	word := uint64(r.origin+int64(now.Sub(r.began))) << 1
	if active {
		word |= 1
	}
	n := r.count.Load()
	r.last[n%keptTransitions].Store(word)
	r.count.Store(n + 1)
}

// copy returns the last transitions, oldest first.
func (r *transitions) copy() []uint64 {
	end := r.count.Load()
	from := end - min(end, keptTransitions)
	words := make([]uint64, 0, end-from)
	for n := from; n != end; n++ {
		words = append(words, r.last[n%keptTransitions].Load())
	}
	// Those that were overwritten meanwhile are later ones, and the one that may
	// be written now is as old as count says.
	if now := r.count.Load() + 1; now > from+keptTransitions {
		words = words[min(now-from-keptTransitions, uint64(len(words))):]
	}
	return words
}

// describe writes a line about the last transition, if there was one.
func (r *transitions) describe(w io.Writer, name string) {
	words := r.copy()
	if len(words) == 0 {
		return
	}
	last, state := words[len(words)-1], "idle"
	if last&1 == 1 {
		state = "active"
	}
	now := r.origin + int64(time.Since(r.began))
	fmt.Fprintf(w, "%s: %s for %v\n", name, state, time.Duration(now-int64(last>>1)).Round(time.Microsecond))
}
