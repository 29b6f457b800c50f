package hw

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// ThreadMode says from where a Worker is used.
type ThreadMode int

const (
	// ThreadSingle: one thread uses the worker and everything on it.
	ThreadSingle ThreadMode = iota
	// ThreadSerialized: several threads, one at a time.
	ThreadSerialized
	// ThreadMultiple: several threads at once. Of those in Progress at a time
	// one does the work and the others return.
	ThreadMultiple
)

// Worker progresses interfaces together, with the operations that wait for room.
type Worker struct {
	mode    ThreadMode // immutable
	pending Pending

	// lease is 1 while a thread is in Progress, in ThreadMultiple. Taken by
	// compare-and-swap (acquire), given back by store (release).
	lease atomic.Uint32

	// ifaces is replaced as a whole under mu and read by Progress.
	ifaces atomic.Pointer[[]Iface]
	mu     sync.Mutex // Add and Remove only, which are control operations
}

// NewWorker makes a worker without interfaces.
func NewWorker(mode ThreadMode) *Worker {
	w := &Worker{mode: mode}
	w.ifaces.Store(&[]Iface{})
	return w
}

// Pending is the queue of operations that met ErrNoResource.
func (w *Worker) Pending() *Pending { return &w.pending }

// Add has the worker progress i.
func (w *Worker) Add(i Iface) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := append(slices.Clone(*w.ifaces.Load()), i)
	w.ifaces.Store(&list)
}

// Remove has the worker leave i alone, before i is closed. In ThreadMultiple it
// waits for a Progress that is under way; it must not be called from a handler.
func (w *Worker) Remove(i Iface) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*w.ifaces.Load()), func(o Iface) bool { return o == i })
	w.ifaces.Store(&list)
	if w.mode == ThreadMultiple {
		for !w.lease.CompareAndSwap(0, 1) {
			runtime.Gosched()
		}
		w.lease.Store(0)
	}
}

// Progress makes progress on all interfaces, up to limit messages on each, then
// tries what waits for room. It returns how many messages, completions and
// waiting operations it has dealt with.
func (w *Worker) Progress(limit int) int {
	if w.mode == ThreadMultiple {
		if !w.lease.CompareAndSwap(0, 1) {
			return 0
		}
		defer w.lease.Store(0)
	}
	n := 0
	for _, i := range *w.ifaces.Load() {
		n += i.Progress(limit)
	}
	return n + w.pending.Dispatch()
}

// CheckPeers finds peers that are gone on all interfaces; a few times a
// second is enough.
func (w *Worker) CheckPeers() {
	if w.mode == ThreadMultiple {
		if !w.lease.CompareAndSwap(0, 1) {
			return
		}
		defer w.lease.Store(0)
	}
	for _, i := range *w.ifaces.Load() {
		i.CheckPeers()
	}
}
