//go:build race

package lease

import (
	"runtime"
	"unsafe"
)

// The race detector does not see synchronisation by words off the Go heap, such as leases. It is shown the state, which
// is on the heap.

func taken[T any](state *T) { runtime.RaceAcquire(unsafe.Pointer(state)) }
func given[T any](state *T) { runtime.RaceRelease(unsafe.Pointer(state)) }
