package pieces

import (
	"unsafe"

	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Address is where a slice that is not empty begins. The caller keeps it alive, and in place: memory of the Go heap
// does not move.
func Address(p []wire.Piece) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p)))) }
