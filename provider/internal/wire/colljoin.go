package wire

import "encoding/binary"

// CollJoin is the join of a member: with the key, all that the members know alike.
type CollJoin struct {
	Group    uint64 // of the sender
	Number   uint64 // of the join among those of the key, from 1
	Taken    bool   // the sender has the receiver's join of that number
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
	number := h.Number
	if h.Taken {
		number |= joinTaken
	}
	binary.LittleEndian.PutUint64(b[24:], number)
	return b[:CollJoinBytes]
}

// MaxJoins is how many joins of a key are numbered: more than members come to.
const MaxJoins = 1 << 48

// joinTaken is the bit of a number that says so.
const joinTaken = 1 << 63

// Parse refuses ranks that are not below the size, and numbers that no member comes to.
func (h *CollJoin) Parse(b []byte) bool {
	if len(b) != CollJoinBytes {
		return false
	}
	h.Group = binary.LittleEndian.Uint64(b[0:])
	h.Size = binary.LittleEndian.Uint32(b[8:])
	h.Rank = binary.LittleEndian.Uint32(b[12:])
	known := h.Settings.Unpack(binary.LittleEndian.Uint32(b[16:]))
	h.Settings.RelaySize = binary.LittleEndian.Uint32(b[20:])
	number := binary.LittleEndian.Uint64(b[24:])
	h.Number, h.Taken = number&^joinTaken, number&joinTaken != 0
	return known && h.Number-1 < MaxJoins && h.Rank < h.Size && h.Size <= MaxMembers
}
