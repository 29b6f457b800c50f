package order

import (
	"runtime"
	"sync/atomic"
)

// Lock guards data that threads of C use, too, without the Go runtime (package direct): they try it, and leave what
// they wanted to the runtime where that fails. A thread that has it does not sleep. The zero Lock is free.
type Lock struct {
	// taken is 1 while a thread has the lock. Taken by compare-and-swap (acquire), given back by store (release).
	taken uint32
}

// tries is how often Try tries: some hundred nanoseconds.
const tries = 100

// Try takes the lock if that does not take long. It needs nothing of the runtime.
func (l *Lock) Try() bool {
	for range tries {
		if atomic.LoadUint32(&l.taken) == 0 && atomic.CompareAndSwapUint32(&l.taken, 0, 1) {
			return true
		}
	}
	return false
}

// Take takes the lock.
func (l *Lock) Take() {
	for !l.Try() {
		runtime.Gosched()
	}
}

// Give gives the lock back. It needs nothing of the runtime.
func (l *Lock) Give() { Store32(&l.taken, 0) }
