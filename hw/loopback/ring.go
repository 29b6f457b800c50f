package loopback

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/mpsc"
)

// Steps on a ring that only this backend needs: include/weft/ring.h and
// package mpsc describe the words.

// slotWord returns the sequence word of position pos, and what it is while the
// slot is free for that position.
func slotWord(r *mpsc.Ring, pos uint64) (word *uint64, free uint64) {
	view := r.Hot()
	return (*uint64)(r.Slot(pos)), pos >> (view.Log2Slots & 63) << hot.SeqLapShift
}

// claimed reports whether there are messages from pos on that the consumer is not
// done with.
func claimed(r *mpsc.Ring, pos uint64) bool {
	for range 1 << r.Hot().Log2Slots {
		if word, free := slotWord(r, pos); !r.Released(pos) {
			return atomic.LoadUint64(word) != free
		}
		pos++
	}
	return true // no producer is a whole lap ahead
}

// swapTail repairs a ring's hint, if it is still what it was.
func swapTail(r *mpsc.Ring, from, to uint64) {
	atomic.CompareAndSwapUint64(r.TailWord(), from, to)
}

// setFree frees the slot at pos for the next claim of that position.
func setFree(r *mpsc.Ring, pos uint64) {
	word, free := slotWord(r, pos)
	order.Store64(word, free)
}

// skipFree gives the slot at pos to the next lap if no producer has claimed it.
func skipFree(r *mpsc.Ring, pos uint64) bool {
	word, free := slotWord(r, pos)
	_, next := slotWord(r, pos+r.Slots())
	return atomic.CompareAndSwapUint64(word, free, next)
}
