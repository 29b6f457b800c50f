package wire

import "encoding/binary"

// CollLong is the RTS of a payload that stays with the sender.
type CollLong struct {
	CollStep
	Request uint64 // of the sender
	Length  uint64 // bytes
	Addr    uint64 // in the sender's process
}

// Put encodes h at the start of b and returns the bytes used.
func (h *CollLong) Put(b []byte) []byte {
	h.CollStep.Put(b)
	binary.LittleEndian.PutUint64(b[8:], h.Request)
	binary.LittleEndian.PutUint64(b[16:], h.Length)
	binary.LittleEndian.PutUint64(b[24:], h.Addr)
	return b[:CollLongBytes]
}

// Parse refuses memory that wraps.
func (h *CollLong) Parse(b []byte) bool {
	if !h.CollStep.Parse(b, CollLongBytes) {
		return false
	}
	h.Request = binary.LittleEndian.Uint64(b[8:])
	h.Length = binary.LittleEndian.Uint64(b[16:])
	h.Addr = binary.LittleEndian.Uint64(b[24:])
	return h.Length <= MaxMessage && h.Addr+h.Length >= h.Addr
}
