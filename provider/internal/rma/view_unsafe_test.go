package rma

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw"
)

// viewOf is the memory of a segment.
func viewOf(s hw.Segment) []byte { return unsafe.Slice((*byte)(s.Addr), s.Len) }
