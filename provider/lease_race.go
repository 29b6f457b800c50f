//go:build race

package provider

import (
	"runtime"
	"unsafe"
)

// The race detector does not see synchronisation by words off the Go heap, such
// as the progress lease.

func leaseTaken(r *rxContext)   { runtime.RaceAcquire(unsafe.Pointer(r)) }
func leaseGivenUp(r *rxContext) { runtime.RaceRelease(unsafe.Pointer(r)) }
