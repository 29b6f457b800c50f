package matched

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
)

// Addresses in operations are those of C memory or of memory off the Go heap: the garbage collector neither moves nor
// frees what they name.

// segmentAt names memory for the device.
func segmentAt(addr, n uint64, m hw.Memory) hw.Segment {
	return hw.Segment{Addr: mem.Pointer(addr), Len: int(n), Memory: m}
}

// gateAddress is where C finds the endpoint's gate, 0: there is none.
func (e *Endpoint) gateAddress() uintptr { return uintptr(unsafe.Pointer(e.o.Gate)) }
