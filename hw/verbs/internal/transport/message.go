package transport

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/hw"
)

// Messages. Every one starts with this header, little endian:
//
//	id | head length | kind | 0x57 | index:4 | seq:4 | payload length:4 | header:8
//
// With MoreFollows in its kind another message follows in the same packet, at the next multiple of 8 bytes.
const (
	HeaderBytes = 24
	MoreFollows = 0x80
	headerMagic = 0x57
	kindAt      = 2
)

// The index that a message carries: whose it is, and above it a count (eager.go).
const (
	IndexBits = 20
	IndexMask = 1<<IndexBits - 1
	countMask = 1<<(32-IndexBits) - 1
)

// Header is the header of a message.
type Header struct {
	ID     uint8  // of its handler
	Head   uint8  // bytes of its head, in front of the payload
	Index  uint32 // of the sender among the receiver's peers, below a count
	Seq    uint32 // position in the sender's queue plus 1
	Length uint32 // of the payload, bytes
	Value  uint64 // what the sender's caller says
}

// Put writes the header into the first HeaderBytes of b.
func (h *Header) Put(b []byte) {
	_ = b[HeaderBytes-1]
	b[0], b[1], b[kindAt], b[3] = h.ID, h.Head, 0, headerMagic
	binary.LittleEndian.PutUint32(b[4:], h.Index)
	binary.LittleEndian.PutUint32(b[8:], h.Seq)
	binary.LittleEndian.PutUint32(b[12:], h.Length)
	binary.LittleEndian.PutUint64(b[16:], h.Value)
}

// bytesOf is how long the message that b starts with says it is. b has at least HeaderBytes.
func bytesOf(b []byte) uint64 {
	return HeaderBytes + uint64(b[1]) + uint64(binary.LittleEndian.Uint32(b[12:]))
}

// mark says of the message that b starts with whether another one follows in its packet.
func mark(b []byte, more bool) {
	b[kindAt] &^= MoreFollows
	if more {
		b[kindAt] |= MoreFollows
	}
}

// Parse reads the header of the message that b, a packet or what is left of one, starts with, checks it, and returns
// how many bytes to pass to the message behind it, 0: none follows. False: b starts with no message.
func Parse(b []byte) (h Header, next int, ok bool) {
	if len(b) < HeaderBytes || b[3] != headerMagic {
		return h, 0, false
	}
	h.ID, h.Head = b[0], b[1]
	h.Index = binary.LittleEndian.Uint32(b[4:])
	h.Seq = binary.LittleEndian.Uint32(b[8:])
	h.Length = binary.LittleEndian.Uint32(b[12:])
	h.Value = binary.LittleEndian.Uint64(b[16:])
	own, all := bytesOf(b), uint64(len(b))
	switch kind := b[kindAt]; {
	case h.ID >= uint8(hw.MaxAM):
		return h, 0, false
	case kind == 0:
		return h, 0, own == all
	case kind != MoreFollows:
		return h, 0, false
	}
	own = (own + 7) &^ 7
	return h, int(own), own < all
}
