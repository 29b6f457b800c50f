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
	alone Word
}

// Word is a word that has the value Alone while one thread alone uses what is guarded, and that thread asks. The zero
// Word never has it.
type Word struct{ at *uint32 }

// Alone is that value. The thread stores it, and another before any other thread uses what is guarded: see hot.Gate.
const Alone = 2

// WordAt is a word in memory.
func WordAt(at *uint32) Word { return Word{at} }

// Alone reports whether the caller is that thread. It needs nothing of the runtime.
func (w Word) Alone() bool { return w.at != nil && atomic.LoadUint32(w.at) == Alone }

// Alone has a thread that is alone, by a word, have the lock without taking it. No other uses the lock meanwhile.
func (l *Lock) Alone(w Word) { l.alone = w }

// tries is how often Try tries: some hundred nanoseconds.
const tries = 100

// Grab takes the lock if it is free. It needs nothing of the runtime.
func (l *Lock) Grab() bool {
	return l.alone.Alone() || atomic.LoadUint32(&l.taken) == 0 && atomic.CompareAndSwapUint32(&l.taken, 0, 1)
}

// Try takes the lock if that does not take long. It needs nothing of the runtime.
func (l *Lock) Try() bool {
	for range tries {
		if l.Grab() {
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
