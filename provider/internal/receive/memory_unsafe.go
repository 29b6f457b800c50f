package receive

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

const (
	iovBytes = int(unsafe.Sizeof(fi.IOVec{}))
	rtsSize  = dataplane.UnexpectedRTSBytes
	// queuedBytes is what an unexpected message that an owner has takes beside its payload.
	queuedBytes = int(unsafe.Sizeof(queued{}))
)

// keptPayload views the payload of an unexpected message that is here whole.
func keptPayload(m *match.Message) []byte {
	if m.Len <= dataplane.InWord {
		return unsafe.Slice((*byte)(unsafe.Pointer(&m.Payload)), m.Len)
	}
	return bytesAt(m.Payload, m.Len)
}

// bytesAt views n bytes at an address. No bytes are at address 0.
func bytesAt(addr, n uint64) []byte { return mem.Bytes(addr, int(n)) }

// vectorAt views a vector of n elements.
func vectorAt(addr uint64, n int) []fi.IOVec { return unsafe.Slice((*fi.IOVec)(mem.Pointer(addr)), n) }

// rtsAt views a kept RTS.
func rtsAt(addr uint64) *wire.RTS { return (*wire.RTS)(mem.Pointer(addr)) }

// recvAt is a receive of which the address is known; it lies outside the Go heap. nil at address 0.
func recvAt(addr uint64) *match.Recv { return (*match.Recv)(mem.Pointer(addr)) }

// addressOf is the address of a receive, 0 of none.
func addressOf(rv *match.Recv) uint64 { return uint64(uintptr(unsafe.Pointer(rv))) }

// addressOfBytes is where a slice that is not empty begins. The caller keeps it
// alive, and in place: memory of the Go heap does not move.
func addressOfBytes(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
