package rma

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
)

// vectorOf names the bytes of a slice that is not empty. The caller keeps it alive, and in place: memory of the Go heap
// does not move.
func vectorOf(b []byte) fi.IOVec {
	return fi.IOVec{Base: uintptr(unsafe.Pointer(unsafe.SliceData(b))), Len: uint64(len(b))}
}
