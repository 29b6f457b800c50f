package eq

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// progressInterval is how often SRead makes progress while it sleeps.
const progressInterval = time.Millisecond

// Progress is a function that moves on what an event of the queue waits for, where the
// application may read nothing else meanwhile: each read calls it.
type Progress struct {
	q    *Queue
	f    func()
	over atomic.Bool // set by End, read before f is called

	// mu is locked while f runs, so that Wait can wait for that. It is not on
	// the data path.
	mu sync.Mutex
}

// AddProgress has every read of the queue call f first, until End. f may post events
// and call End.
func (q *Queue) AddProgress(f func()) *Progress {
	a := &Progress{q: q, f: f}
	q.mu.Lock()
	q.progresses = append(slices.Clip(q.progresses), a)
	q.progressing.Add(1)
	q.mu.Unlock()
	return a
}

// End ends the calls, but for one that is under way. It may be called again.
func (a *Progress) End() {
	if a.over.Swap(true) {
		return
	}
	q := a.q
	q.mu.Lock()
	q.progresses = slices.DeleteFunc(slices.Clone(q.progresses), func(o *Progress) bool { return o == a })
	q.progressing.Add(-1)
	q.mu.Unlock()
}

// Wait waits for a call that is under way when End has been called. f must not
// call it.
func (a *Progress) Wait() {
	a.mu.Lock()
	defer a.mu.Unlock()
}

// makeProgress calls the functions, and reports whether there are any left.
func (q *Queue) makeProgress() bool {
	if q.progressing.Load() == 0 {
		return false
	}
	q.mu.Lock()
	list := q.progresses // never changed in place
	q.mu.Unlock()
	for _, a := range list {
		if a.mu.TryLock() { // else another reader is at it
			if !a.over.Load() {
				a.f()
			}
			a.mu.Unlock()
		}
	}
	return q.progressing.Load() != 0
}
