package hot

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/order"
)

// Ring has C ring a doorbell, and give back a lock behind it, nil: none.
func (b *Bell) Ring(word unsafe.Pointer, value uint64, lock *uint32) {
	b.Word, b.Value, b.Lock = uintptr(word), value, uintptr(unsafe.Pointer(lock))
}

// Sleeps is called by a thread that is about to sleep on a queue of the context's endpoints, before it polls the last
// time: from then on posts of receives that may be for an unexpected message see it. The first one has every thread
// pass a memory barrier: what a thread has posted that saw no word is on the ring then. A progress thread's bell has
// precedence, and may come later.
func (rx *Rx) Sleeps() {
	if atomic.CompareAndSwapUintptr(&rx.Bell, 0, uintptr(unsafe.Pointer(&rx.Asleep))) {
		order.Barrier()
	}
	atomic.StoreUint32(&rx.Asleep, BellAsleep)
}

// Woken reports whether threads may sleep, and takes that back: the caller, which has published work, wakes them.
func (rx *Rx) Woken() bool {
	return atomic.LoadUint32(&rx.Asleep) == BellAsleep && atomic.SwapUint32(&rx.Asleep, BellAwake) == BellAsleep
}
