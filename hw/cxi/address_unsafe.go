package cxi

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw"
)

// addressPointer is mem.Address as a pointer.
func addressPointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// segmentBytes are the bytes of a segment, which has some.
func segmentBytes(s *hw.Segment) []byte { return unsafe.Slice((*byte)(s.Addr), s.Len) }

// segmentAddress is where a segment begins, 0 if it has no bytes.
func segmentAddress(s *hw.Segment) uintptr {
	if s.Len == 0 {
		return 0
	}
	return uintptr(s.Addr)
}

// into are the bytes of a receive.
func (r *receive) into() []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&r.memory))), r.room)
}
