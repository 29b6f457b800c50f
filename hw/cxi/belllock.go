package cxi

import (
	"runtime"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/seam"
	"github.com/weft-fabric/weft/internal/order"
)

// queueLock is taken for some tens of nanoseconds at a time.
type queueLock struct {
	// taken is 1 while a thread holds the lock. Taken by compare-and-swap (acquire), given back by store (release).
	taken uint32
	// alone is of a thread that needs not take the lock. Set before that is used.
	alone order.Word
}

// grab takes the lock if it is free, unless the thread is alone.
func (l *queueLock) grab() bool {
	return l.alone.Alone() || atomic.CompareAndSwapUint32(&l.taken, 0, 1)
}

func (l *queueLock) take() {
	for n := 1; !l.grab(); n++ {
		if n%32 == 0 {
			runtime.Gosched()
		}
	}
}

// try takes the lock if that does not take long.
func (l *queueLock) try() bool {
	if l.alone.Alone() {
		return true
	}
	for range 500 {
		if atomic.LoadUint32(&l.taken) == 0 && l.grab() {
			return true
		}
	}
	return false
}

// release gives the lock back.
func (l *queueLock) release() { order.Store32(&l.taken, 0) }

// bellLock is the lock of a command queue. A thread that gives it back leaves the doorbell to one that waits for it,
// which may have commands of its own. So each way to give it back rings, leaves the doorbell to one that waits, or says
// that commands stand there (unrung), and so does a thread that has waited in vain: there is no other way.
type bellLock struct {
	spin queueLock
	// waiting is the number of threads that want the lock, and see to the doorbell of what its holder posts. Added to
	// by them; read by its holder.
	waiting atomic.Int32
	// q is the queue, unrung says that commands may stand in it without a doorbell. Set once, by guard.
	q      *nic.Queue
	unrung *flag
}

// guard says of which queue it is the lock, before it is used.
func (l *bellLock) guard(q *nic.Queue, unrung *flag) { l.q, l.unrung = q, unrung }

func (l *bellLock) take() {
	if l.spin.grab() {
		return
	}
	l.waiting.Add(1)
	l.spin.take()
	l.waiting.Add(-1)
}

// takeQuietly is take of a thread to which no doorbell is left while it waits.
func (l *bellLock) takeQuietly() { l.spin.take() }

// try takes the lock if that does not take long.
func (l *bellLock) try() bool {
	if l.spin.grab() {
		return true
	}
	l.waiting.Add(1)
	taken := l.spin.try()
	l.waiting.Add(-1)
	if !taken { // after the count: a holder that clears the flag, and reads the count then, finds one of the two
		l.unrung.set()
	}
	return taken
}

// tryQuietly is try of a thread to which no doorbell is left while it waits.
func (l *bellLock) tryQuietly() bool { return l.spin.try() }

// give gives the lock back, and has the NIC read what was posted, unless a thread waits for the lock, which will.
func (l *bellLock) give() {
	if l.q.Waiting() && l.waiting.Load() == 0 {
		l.q.Ring()
	}
	l.spin.release()
}

// leave gives the lock back as give does, but C rings.
func (l *bellLock) leave(b *seam.Bell) {
	if l.q.Waiting() && l.waiting.Load() == 0 {
		word, value := l.q.Due()
		b.Ring(word, value, &l.spin.taken)
		return
	}
	l.spin.release()
}

// keep gives the lock back without a doorbell: the thread that takes the flag rings, or the next one that posts.
func (l *bellLock) keep() {
	if l.q.Waiting() {
		l.unrung.set()
	}
	l.spin.release()
}

// flag is 0 or 1.
type flag struct {
	v     uint32     // sequentially consistent, of a thread that is alone release
	alone order.Word // as of queueLock
}

func (f *flag) set() {
	if f.alone.Alone() {
		order.Store32(&f.v, 1)
		return
	}
	atomic.StoreUint32(&f.v, 1)
}

// isSet reports whether the flag is set.
func (f *flag) isSet() bool { return atomic.LoadUint32(&f.v) != 0 }

// take clears the flag and reports whether it was set.
func (f *flag) take() bool {
	switch {
	case !f.isSet():
		return false
	case f.alone.Alone():
		order.Store32(&f.v, 0)
		return true
	}
	return atomic.SwapUint32(&f.v, 0) != 0
}
