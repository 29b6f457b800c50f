package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/provider/collective"
)

// CollStep says which operation of a group a message belongs to.
type CollStep struct {
	Seq  uint32 // of the operation
	Kind collective.Kind
	Rank uint32 // of the sender
}

// Put encodes h at the start of b and returns the bytes used.
func (h *CollStep) Put(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[0:], h.Seq)
	binary.LittleEndian.PutUint32(b[4:], uint32(h.Kind)<<24|h.Rank)
	return b[:CollStepBytes]
}

// Parse reads the head of a message whose head in all has size bytes.
func (h *CollStep) Parse(b []byte, size int) bool {
	if len(b) != size {
		return false
	}
	h.Seq = binary.LittleEndian.Uint32(b[0:])
	v := binary.LittleEndian.Uint32(b[4:])
	h.Kind, h.Rank = collective.Kind(v>>24), v&(MaxMembers-1)
	return h.Kind <= collective.AllToAllV
}
