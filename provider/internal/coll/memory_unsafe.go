package coll

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
)

// earlyCost is what a message that comes early counts beside its payload, in bytes.
const earlyCost = uint64(unsafe.Sizeof(earlyStep{}))

// segmentOf is a slice as a transport takes it.
func segmentOf(b []byte) hw.Segment {
	return hw.Segment{Addr: unsafe.Pointer(unsafe.SliceData(b)), Len: len(b)}
}

// bytesAt views n bytes at an address of memory that the collector neither moves nor frees. No bytes are at address 0.
func bytesAt(addr, n uint64) []byte {
	return mem.Bytes(addr, int(n))
}

// addressOfBytes is where a slice begins, which the caller keeps alive and in place.
func addressOfBytes(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
