package region

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw"
)

// HW is the region as a memory domain registers it for peers. It is one part.
func (r *Region[O]) HW() hw.Region {
	at := &r.Memory.Parts[0].Base // an address of memory off the Go heap, or of memory that the application keeps
	return hw.Region{
		Addr: *(*unsafe.Pointer)(unsafe.Pointer(at)), Len: int(r.Length), Access: r.RemoteAccess(), Base: r.Base,
	}
}
