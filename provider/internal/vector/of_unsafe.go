package vector

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/mem"
)

// Of names the bytes of a slice. The caller keeps it alive, and in place: memory of the Go heap does not move.
func Of(b []byte) fi.IOVec {
	return fi.IOVec{Base: uintptr(unsafe.Pointer(unsafe.SliceData(b))), Len: uint64(len(b))}
}

// At views a vector of n elements at an address, which is not of the Go heap.
func At(addr, n uint64) []fi.IOVec { return unsafe.Slice((*fi.IOVec)(mem.Pointer(addr)), n) }

// Bytes is how many bytes a vector of n elements takes itself.
func Bytes(n int) int { return n * int(unsafe.Sizeof(fi.IOVec{})) }
