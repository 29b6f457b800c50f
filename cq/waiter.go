package cq

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
)

// Waiter lets threads sleep until there is something in one queue or counter.
// Package eq uses it too. Its methods may be called by any thread.
type Waiter struct {
	kind fi.WaitObj
	s    *sleeper // nil: WaitNone
	set  *WaitSet // what s belongs to, else nil
	// word is 1 while a thread sleeps or is about to: set by sleepers, seq_cst,
	// cleared by the thread that wakes them, by CAS. Off the Go heap where C reads it.
	word *uint32
	// pending reports whether there is something to read. reported, if not nil, is
	// called when that has been reported to an application. Immutable.
	pending  func() bool
	reported func()
	sources  sources
	armed    []*Source // sources that this waiter has armed; under s.mu
}

// NewWaiter returns the waiter of a queue or counter whose armed flag is at
// word and whose wait object is of a kind; set is the wait set of fi.WaitSet, whose threads may call pending and
// reported at once. The error wraps EINVAL for an unknown kind or a missing set, or a system error.
func NewWaiter(kind fi.WaitObj, set *WaitSet, word *uint32, pending func() bool, reported func()) (*Waiter, error) {
	w := &Waiter{kind: kind, word: word, pending: pending, reported: reported}
	switch kind {
	case fi.WaitNone:
		return w, nil
	case fi.WaitSet:
		if set == nil {
			return nil, fmt.Errorf("wait object set without a set: %w", fi.EINVAL)
		}
		w.set, w.s = set, set.s
		if err := set.join(w); err != nil {
			return nil, err
		}
		return w, nil
	}
	s, err := newSleeper(kind)
	if err != nil {
		return nil, err
	}
	w.s, w.kind = s, s.kind
	s.add(w)
	return w, nil
}

// Close gives the wait object back. No thread may use the waiter any more; threads may wait on its set.
func (w *Waiter) Close() {
	if w.set != nil {
		w.set.leave(w) // no thread that waits on it arms the waiter from here on
	}
	for _, src := range w.armed {
		src.disarm()
	}
	if w.s == nil {
		return
	}
	for _, src := range w.sources.all() {
		w.s.removeDoorbell(src.FD)
	}
	if w.set == nil {
		w.s.close()
	} else {
		w.set.users.Add(-1) // which may be closed then
	}
}

// Kind returns the kind of wait object that was chosen: never fi.WaitUnspec.
func (w *Waiter) Kind() fi.WaitObj { return w.kind }

// FD returns the descriptor to poll for input, -1 if there is none. It belongs
// to the waiter. It holds all others that matter, so a poll array has it alone.
func (w *Waiter) FD() int {
	if !w.sleeps() {
		return -1
	}
	return w.s.epoll
}

// OnWake sets what wakes the threads that wait on the application's condition
// variable, for fi.WaitMutexCond. It must be set before TryWait. f is called by
// a goroutine, possibly without need.
func (w *Waiter) OnWake(f func()) {
	if w.sleeps() {
		w.s.wake = f
	}
}

// Waitable reports whether producers must find out whether a thread sleeps.
func (w *Waiter) Waitable() bool { return w.s != nil && w.s.epoll >= 0 }

// Wake wakes the sleepers. It is called after what they wait for was published with sync/atomic, or behind a full
// fence (W0). It costs one load when no thread sleeps.
func (w *Waiter) Wake() {
	if atomic.LoadUint32(w.word) == 1 && atomic.CompareAndSwapUint32(w.word, 1, 0) {
		w.s.event.raise()
	}
}

// arm and disarm are called by a thread that has s.mu.
func (w *Waiter) arm() {
	atomic.StoreUint32(w.word, 1)
	for _, src := range w.sources.all() {
		if src.FD < 0 {
			continue // there is nothing to arm
		}
		fresh := !slices.Contains(w.armed, src)
		if fresh {
			w.armed = append(w.armed, src)
		}
		src.arm(fresh)
	}
}

func (w *Waiter) disarm() {
	atomic.StoreUint32(w.word, 0)
	for _, src := range w.armed {
		src.disarm()
	}
	w.armed = w.armed[:0]
}

// AddSource makes progress and sleep include a source; it may be added several
// times.
func (w *Waiter) AddSource(src *Source) error {
	fresh, err := w.sources.add(src)
	if err != nil || !fresh || w.s == nil {
		return err
	}
	if err := w.s.addDoorbell(src.FD); err != nil {
		_, _ = w.sources.remove(src) // it is there
		return err
	}
	w.s.event.raise() // sleepers that armed without it poll again
	return nil
}

// RemoveSource takes back one AddSource. The descriptor may be closed after the
// last; the functions may still be running in other threads. For a source without a descriptor it waits for no thread
// that arms, so that Progress may call it with what others arm under.
func (w *Waiter) RemoveSource(src *Source) error {
	last, err := w.sources.remove(src)
	if err != nil || !last || w.s == nil || src.FD < 0 {
		return err
	}
	w.s.removeDoorbell(src.FD)
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if i := slices.Index(w.armed, src); i >= 0 {
		w.armed = slices.Delete(w.armed, i, i+1)
		src.disarm()
	}
	return nil
}

// Progress lets every source that has work do a batch, and reports whether any
// had.
func (w *Waiter) Progress() bool { return w.sources.progress() }

// found reports whether another poll would find something.
func (w *Waiter) found() bool { return w.pending() || w.sources.hasWork() }

// Sleep returns when ready (nil: pending) might have become true, when a source
// has work, or at the time until (zero: never). It may return early: the caller
// polls, and sleeps again. signaled: a signal to the calling thread was the reason. It returns ENOSYS where there is
// nothing to sleep on: for fi.WaitNone and fi.WaitSet.
func (w *Waiter) Sleep(ready func() bool, until time.Time) (signaled bool, err error) {
	if !w.sleeps() {
		return false, errNoSys
	}
	return w.sleep(ready, until), nil
}

// sleeps reports whether there is something to sleep on.
func (w *Waiter) sleeps() bool { return w.s != nil && w.set == nil }

func (w *Waiter) sleep(ready func() bool, until time.Time) (signaled bool) {
	if ready == nil {
		return w.s.sleep(w.found, until)
	}
	return w.s.sleep(func() bool { return ready() || w.sources.hasWork() }, until)
}

// TryWait prepares for a wait on the descriptor or condition variable
// (fi_trywait(3)): nil means that everything that comes from now on wakes it,
// EAGAIN that there is something already. For a member of a set it prepares the
// set. EINVAL: there is no wait object.
func (w *Waiter) TryWait() error {
	switch {
	case w.s == nil:
		return fmt.Errorf("trywait without a wait object: %w", fi.EINVAL)
	case w.set != nil:
		return w.set.TryWait()
	case w.s.tryArm(w.found):
		return nil
	}
	w.report()
	return errAgain
}

// sleepers returns how many threads sleep, and signal wakes them.
func (w *Waiter) sleepers() uint32 {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return uint32(w.s.sleeping)
}

func (w *Waiter) signal() { w.s.event.raise() }

func (w *Waiter) report() {
	if w.reported != nil {
		w.reported()
	}
}

// Errors of the data path, made once so that returning them allocates nothing.
var (
	errAgain = fi.EAGAIN.Err()
	errAvail = fi.EAVAIL.Err()
	errNoSys = fi.ENOSYS.Err()
)

// until returns when a timeout in milliseconds from now ends, zero for never.
func until(ms int) time.Time {
	if ms < 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ms) * time.Millisecond)
}

func expired(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// yield lets another thread, and another goroutine, run.
func yield() {
	runtime.Gosched()
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // cannot fail
}
