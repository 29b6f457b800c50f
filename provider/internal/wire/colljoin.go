package wire

import "encoding/binary"

// CollJoin is the join of a member: with the key, all that the members know alike.
type CollJoin struct {
	Group    uint64 // of the sender
	Size     uint32 // members
	Rank     uint32 // of the sender
	Settings CollSettings
}

// Put encodes h at the start of b and returns the bytes used.
func (h *CollJoin) Put(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[0:], h.Group)
	binary.LittleEndian.PutUint32(b[8:], h.Size)
	binary.LittleEndian.PutUint32(b[12:], h.Rank)
	binary.LittleEndian.PutUint32(b[16:], h.Settings.Pack())
	binary.LittleEndian.PutUint32(b[20:], h.Settings.RelaySize)
	return b[:CollJoinBytes]
}

// Parse refuses ranks that are not below the size.
func (h *CollJoin) Parse(b []byte) bool {
	if len(b) != CollJoinBytes {
		return false
	}
	h.Group = binary.LittleEndian.Uint64(b[0:])
	h.Size = binary.LittleEndian.Uint32(b[8:])
	h.Rank = binary.LittleEndian.Uint32(b[12:])
	known := h.Settings.Unpack(binary.LittleEndian.Uint32(b[16:]))
	h.Settings.RelaySize = binary.LittleEndian.Uint32(b[20:])
	return known && h.Rank < h.Size && h.Size <= MaxMembers
}
