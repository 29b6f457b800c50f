package tooltest

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
)

func vector(b []byte) []fi.IOVec {
	return []fi.IOVec{{Base: uintptr(unsafe.Pointer(unsafe.SliceData(b))), Len: uint64(len(b))}}
}
