package target

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// pointerAt turns an address into a pointer.
func pointerAt(addr uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// bytesAt views n bytes at an address. No bytes are at address 0.
func bytesAt(addr, n uint64) []byte { return unsafe.Slice((*byte)(pointerAt(addr)), n) }

// vectorAt views a vector of n elements.
func vectorAt(addr, n uint64) []fi.IOVec { return unsafe.Slice((*fi.IOVec)(pointerAt(addr)), n) }

// segment is n bytes at an address as a transport takes them.
func segment(addr, n uint64) hw.Segment { return hw.Segment{Addr: pointerAt(addr), Len: int(n)} }
