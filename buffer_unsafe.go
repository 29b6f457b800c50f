package weft

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
)

// vector describes b. The caller keeps b reachable while the vector is in use.
func vector(b []byte) fi.IOVec {
	return fi.IOVec{Base: uintptr(unsafe.Pointer(unsafe.SliceData(b))), Len: uint64(len(b))}
}
