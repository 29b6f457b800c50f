package messages

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
)

// vectorOf names the bytes of a slice. The caller keeps it alive, and in place: memory of the Go heap does not move.
func vectorOf(b []byte) fi.IOVec {
	return fi.IOVec{Base: uintptr(unsafe.Pointer(unsafe.SliceData(b))), Len: uint64(len(b))}
}

// addressOf is what C's table has of a structure that the sender keeps alive.
func addressOf[T any](at *T) uintptr { return uintptr(unsafe.Pointer(at)) }
