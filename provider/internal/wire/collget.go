package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/internal/exchange"
)

// CollGrant lets a receiver get a chunk from the region that the sender has offered (CollTarget). It goes as AMCollCTS,
// to a group's number.
type CollGrant struct {
	CollStep
	Part exchange.Chunk
}

// Put encodes h at the start of b and returns the bytes used.
func (h *CollGrant) Put(b []byte) []byte { return (*CollChunk)(h).Put(b) }

// Parse decodes what a peer sent and reports whether it is valid: a chunk has bytes.
func (h *CollGrant) Parse(b []byte) bool {
	return (*CollChunk)(h).Parse(b) && h.Part.Length != 0
}

// CollRefusal says that the receiver cannot get the slice that it was offered, of which it has the bytes before From.
// It goes as AMCollStep.
type CollRefusal struct {
	CollStep
	From uint64
}

// Put encodes h at the start of b and returns the bytes used.
func (h *CollRefusal) Put(b []byte) []byte {
	h.CollStep.Put(b)
	binary.LittleEndian.PutUint64(b[CollStepBytes:], h.From)
	return b[:CollRefusalBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (h *CollRefusal) Parse(b []byte) bool {
	if !h.CollStep.Parse(b, CollRefusalBytes) {
		return false
	}
	h.From = binary.LittleEndian.Uint64(b[CollStepBytes:])
	return h.From < MaxMessage
}
