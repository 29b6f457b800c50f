// Package freering has the numbers of what is free in a table, as a ring from which one side takes them and into which
// another gives them back, both without an atomic read-modify-write.
//
// # Model
//
// Two rights belong to a ring, each of which one thread has at a time, by a lease or lock of the caller's: the taker's
// (Take, Undo), and the giver's (Put). The two threads may be at it at once. The giver has each number from its
// taker, by something that orders the two: what was done with it before Put is seen by the thread that takes it next.
//
// # Why it holds
//
// Positions run freely and are masked on use. The ring has at least as many slots as there are numbers, so that
// neither side ever finds it full:
//
//   - The slot that Put stores into is at tail. A number that is put is in no slot, so head is behind tail - slots, and
//     the position that had the slot before was taken. As many numbers were put as were taken up to some position no
//     earlier than that, so that the giver, which has them from the taker, comes after that position's reading.
//   - The slot that Undo stores into is before head. It is tail's only if all slots are used, and the number that is
//     given back is in none.
//   - The taker reads a slot below the tail that it has loaded (F1, acquire), behind which the giver has stored the
//     number (F0, release).
//
// A thread that has neither right may ask for Len alone.
//
// # Which numbers circulate
//
// A number is taken for the first time when none is there that was put: as many circulate as were used at a time, so
// that of what they number no more is in caches, and in memory, than is used. Where one that is put is to rest as
// long as possible, all of them circulate (Fill).
//
// # Limits
//
// Numbers have 32 bits. One that is put twice, or was never taken, breaks the ring: the caller guards against it.
package freering

import (
	"math/bits"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/order"
)

// Ring has numbers. The zero Ring has none, and no room.
type Ring struct {
	slots []uint32 // immutable, as mask and end
	mask  uint32
	end   uint32
	_     [32]byte
	// head is the position of the next number to take. Stored by the taker (release), read by any thread.
	head uint32
	seen uint32 // the taker's: what it has loaded of tail last
	// fresh is the first number that was not taken yet; those up to end were not, either. As head.
	fresh uint32
	_     [52]byte
	// tail is the position of the next number to be put. Stored by the giver (release, F0), loaded by the taker
	// (acquire, F1), read by any thread.
	tail uint32
	_    [60]byte
}

// Open gives a ring count numbers from first. Nothing else uses it yet.
func (r *Ring) Open(first, count uint32) {
	size := uint32(1)
	if count > 1 {
		size = 1 << bits.Len32(count-1)
	}
	r.slots, r.mask = make([]uint32, size), size-1
	r.head, r.seen, r.tail = 0, 0, 0
	r.fresh, r.end = first, first+count
}

// Take takes the number that was put longest ago, one that was not taken yet where there is none. False: there are
// neither. The taker's. It needs nothing of the runtime.
func (r *Ring) Take() (n uint32, ok bool) {
	h := r.head
	if h == r.seen {
		if r.seen = atomic.LoadUint32(&r.tail); h == r.seen { // F1
			return r.first()
		}
	}
	n = r.slots[h&r.mask]
	order.Store32(&r.head, h+1)
	return n, true
}

// first takes a number for the first time.
func (r *Ring) first() (n uint32, ok bool) {
	if n = r.fresh; n == r.end {
		return 0, false
	}
	order.Store32(&r.fresh, n+1)
	return n, true
}

// Fill has all numbers circulate: each that is put rests until all others were taken. Nothing else uses the ring yet.
func (r *Ring) Fill() {
	for range r.end - r.fresh {
		n, _ := r.first()
		r.Put(n)
	}
}

// Undo gives back a number that was taken and not used: it is the next to be taken. The taker's. It needs nothing of
// the runtime.
func (r *Ring) Undo(n uint32) {
	h := r.head - 1
	r.slots[h&r.mask] = n
	order.Store32(&r.head, h)
}

// Put gives a number back. The giver's. It needs nothing of the runtime.
func (r *Ring) Put(n uint32) {
	t := r.tail
	r.slots[t&r.mask] = n
	order.Store32(&r.tail, t+1) // F0
}

// Len is how many numbers there are. Any thread.
func (r *Ring) Len() int {
	for {
		h, f, t := atomic.LoadUint32(&r.head), atomic.LoadUint32(&r.fresh), atomic.LoadUint32(&r.tail)
		if atomic.LoadUint32(&r.head) == h && atomic.LoadUint32(&r.fresh) == f {
			return int(t - h + r.end - f)
		}
	}
}
