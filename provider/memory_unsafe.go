package provider

import (
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// pointerAt turns an address that a request carries into a pointer. It is of C memory or of memory off the Go heap:
// the garbage collector neither moves nor frees what it names.
func pointerAt(addr uint64) unsafe.Pointer { return mem.Pointer(addr) }

// addressOf is what tables that C reads have of a structure, which lies outside the Go heap, or which the endpoint
// keeps alive.
func addressOf[T any](at *T) uintptr { return uintptr(unsafe.Pointer(at)) }

// stripesAt views the stripes behind the table of an endpoint that has n of them.
func stripesAt(h *hot.EP, n int) []hot.Stripe {
	return unsafe.Slice((*hot.Stripe)(unsafe.Add(unsafe.Pointer(h), unsafe.Sizeof(hot.EP{}))), n)
}
