package mapping

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/hmem"
)

// host is memory of the process itself, n bytes.
func host(n int) (b []byte, m hmem.Region) {
	b = make([]byte, n)
	return b, hmem.Region{Parts: []fi.IOVec{{Base: uintptr(unsafe.Pointer(&b[0])), Len: uint64(n)}}}
}
