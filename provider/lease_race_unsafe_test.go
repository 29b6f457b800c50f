//go:build race

package provider

import (
	"runtime"
	"unsafe"
)

// What package lease shows the race detector, for tests that take the lease as C does.

func leaseTaken(r *leasedRx) { runtime.RaceAcquire(unsafe.Pointer(r)) }
func leaseGiven(r *leasedRx) { runtime.RaceRelease(unsafe.Pointer(r)) }
