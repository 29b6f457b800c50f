package provider

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// Addresses in requests are those of C memory or of memory off the Go heap:
// the garbage collector neither moves nor frees what they name.

const iovBytes = int(unsafe.Sizeof(fi.IOVec{}))

// pointerAt turns an address that a request carries into a pointer.
func pointerAt(addr uint64) unsafe.Pointer { return mem.Pointer(addr) }

// bytesAt views n bytes at an address. No bytes are at address 0.
func bytesAt(addr, n uint64) []byte {
	return mem.Bytes(addr, int(n))
}

// vectorAt views a vector of n elements.
func vectorAt(addr uint64, n int) []fi.IOVec {
	return unsafe.Slice((*fi.IOVec)(pointerAt(addr)), n)
}

// wordAt is a word that other threads or processes write; for sync/atomic.
func wordAt(addr uintptr) *uint64 { return (*uint64)(pointerAt(uint64(addr))) }

// addressOf is what tables that C reads have of a structure, which lies outside the Go heap, or which the endpoint
// keeps alive.
func addressOf[T any](at *T) uintptr { return uintptr(unsafe.Pointer(at)) }

// stripesAt views the stripes behind the table of an endpoint that has n of them.
func stripesAt(h *hot.EP, n int) []hot.Stripe {
	return unsafe.Slice((*hot.Stripe)(unsafe.Add(unsafe.Pointer(h), unsafe.Sizeof(hot.EP{}))), n)
}

// addressOfBytes is where a slice that is not empty begins. The caller keeps it
// alive, and in place: memory of the Go heap does not move.
func addressOfBytes(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
