package udp

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw"
)

func segment(b []byte) hw.Segment {
	return hw.Segment{Addr: unsafe.Pointer(unsafe.SliceData(b)), Len: len(b)}
}

func regionOf(b []byte) hw.Region {
	return hw.Region{Addr: unsafe.Pointer(unsafe.SliceData(b)), Len: len(b), Access: allAccess}
}
