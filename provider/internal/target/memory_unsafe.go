package target

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
)

// bytesAt views n bytes at an address. No bytes are at address 0.
func bytesAt(addr, n uint64) []byte { return mem.Bytes(addr, int(n)) }

// vectorAt views a vector of n elements.
func vectorAt(addr, n uint64) []fi.IOVec { return unsafe.Slice((*fi.IOVec)(mem.Pointer(addr)), n) }

// segment is n bytes at an address as a transport takes them.
func segment(addr, n uint64) hw.Segment { return hw.Segment{Addr: mem.Pointer(addr), Len: int(n)} }
