package eq

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// attendInterval is how often SRead calls attendants while it sleeps.
const attendInterval = time.Millisecond

// Attendant is progress that an event of the queue waits for, where the
// application may read nothing else meanwhile: each read makes it.
type Attendant struct {
	q    *Queue
	f    func()
	over atomic.Bool // set by End, read before f is called

	// mu is held while f runs, so that Wait can wait for that. It is not on
	// the data path.
	mu sync.Mutex
}

// Attend has every read of the queue call f first, until End. f may post events
// and call End.
func (q *Queue) Attend(f func()) *Attendant {
	a := &Attendant{q: q, f: f}
	q.mu.Lock()
	q.attendants = append(slices.Clip(q.attendants), a)
	q.attended.Add(1)
	q.mu.Unlock()
	return a
}

// End ends the calls, but for one that is under way. It may be called again.
func (a *Attendant) End() {
	if a.over.Swap(true) {
		return
	}
	q := a.q
	q.mu.Lock()
	q.attendants = slices.DeleteFunc(slices.Clone(q.attendants), func(o *Attendant) bool { return o == a })
	q.attended.Add(-1)
	q.mu.Unlock()
}

// Wait waits for a call that is under way when End has been called. f must not
// call it.
func (a *Attendant) Wait() {
	a.mu.Lock()
	defer a.mu.Unlock()
}

// attend calls the attendants, and reports whether there are any left.
func (q *Queue) attend() bool {
	if q.attended.Load() == 0 {
		return false
	}
	q.mu.Lock()
	list := q.attendants // never changed in place
	q.mu.Unlock()
	for _, a := range list {
		if a.mu.TryLock() { // else another reader is at it
			if !a.over.Load() {
				a.f()
			}
			a.mu.Unlock()
		}
	}
	return q.attended.Load() != 0
}
