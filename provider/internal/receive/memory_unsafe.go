package receive

import (
	"unsafe"

	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

const (
	rtsSize = dataplane.UnexpectedRTSBytes
	// queuedBytes is what an unexpected message that an owner has takes beside its payload.
	queuedBytes = int(unsafe.Sizeof(queued{}))
)

// keptPayload views the payload of an unexpected message that is here whole.
func keptPayload(m *match.Message) []byte {
	if m.Len <= dataplane.InWord {
		return unsafe.Slice((*byte)(unsafe.Pointer(&m.Payload)), m.Len)
	}
	return mem.Bytes(m.Payload, m.Len)
}

// rtsAt views a kept RTS.
func rtsAt(addr uint64) *wire.RTS { return (*wire.RTS)(mem.Pointer(addr)) }

// recvAt is a receive of which the address is known; it lies outside the Go heap. nil at address 0.
func recvAt(addr uint64) *match.Recv { return (*match.Recv)(mem.Pointer(addr)) }

// addressOf is the address of a receive, 0 of none.
func addressOf(rv *match.Recv) uint64 { return uint64(uintptr(unsafe.Pointer(rv))) }
