//go:build race

package lease

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// mustBeTaken panics where a lease is free.
func mustBeTaken(word *uint32) {
	if atomic.LoadUint32(word) == 0 {
		panic("state behind a lease that is free")
	}
}

// The race detector does not see synchronisation by words off the Go heap, such as leases. It is shown the state, which
// is on the heap.

func taken[T any](state *T) { runtime.RaceAcquire(unsafe.Pointer(state)) }
func given[T any](state *T) { runtime.RaceRelease(unsafe.Pointer(state)) }
