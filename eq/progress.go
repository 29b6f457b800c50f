package eq

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
)

// Progress is a function that moves on what an event of the queue waits for, where the
// application may read nothing else meanwhile: each read calls it, and so do threads that sleep on the queue or its
// wait set, every millisecond.
type Progress struct {
	q    *Queue
	src  cq.Source // of the queue's waiter until End
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
	a.src.FD = -1
	a.src.HasWork = func() bool { return false } // nothing that a sleeper would find at once
	a.src.Attention = func() bool { return !a.over.Load() }
	a.src.Progress = a.call
	_ = q.wait.AddSource(&a.src) // it has its functions, and no descriptor
	return a
}

// call calls f, unless another thread is at it.
func (a *Progress) call() {
	if !a.mu.TryLock() {
		return
	}
	defer a.mu.Unlock()
	if !a.over.Load() {
		a.f()
	}
}

// End ends the calls, but for one that is under way. It may be called again.
func (a *Progress) End() {
	if !a.over.Swap(true) {
		_ = a.q.wait.RemoveSource(&a.src) // it was added
	}
}

// Wait waits for a call that is under way when End has been called. f must not
// call it.
func (a *Progress) Wait() {
	a.mu.Lock()
	defer a.mu.Unlock()
}
