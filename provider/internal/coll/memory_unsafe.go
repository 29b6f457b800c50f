package coll

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw"
)

// earlyCost is what a message that comes early counts beside its payload, in bytes.
const earlyCost = uint64(unsafe.Sizeof(earlyStep{}))

// segmentOf is a slice as a transport takes it.
func segmentOf(b []byte) hw.Segment {
	return hw.Segment{Addr: unsafe.Pointer(unsafe.SliceData(b)), Len: len(b)}
}
