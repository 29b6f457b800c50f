package vector

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
)

// Of names the bytes of a slice. The caller keeps it alive, and in place: memory of the Go heap does not move.
func Of(b []byte) fi.IOVec {
	return fi.IOVec{Base: uintptr(unsafe.Pointer(unsafe.SliceData(b))), Len: uint64(len(b))}
}
