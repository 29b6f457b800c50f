package cxi

import "unsafe"

// addressOf is the address of memory that is off the Go heap, or that the
// caller keeps alive.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// addressPointer is the same as a pointer.
func addressPointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
