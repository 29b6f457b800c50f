package wire

import "encoding/binary"

// CollTarget is the offer of a receiver: its slice of an operation goes to a region that the sender may put into, whose
// addresses begin at 0. Where receivers get slices, it is that of a sender: its slice is the region. It goes as
// AMCollCTS, to a group's number.
type CollTarget struct {
	CollStep
	Length   uint64        // of the slice and of the region, at least 1
	KeyBytes uint8         // of Key, at least 1
	Key      [CollKey]byte // of the region, packed, with zeros behind it
}

// CollKey is the bytes of a key that a target has room for.
const CollKey = 32

// SetKey takes in a packed key of at most CollKey bytes.
func (h *CollTarget) SetKey(packed []byte) { h.KeyBytes = uint8(copy(h.Key[:], packed)) }

// PackedKey appends the packed key.
func (h *CollTarget) PackedKey(to []byte) []byte { return append(to, h.Key[:h.KeyBytes]...) }

// Put encodes h at the start of b and returns the bytes used.
func (h *CollTarget) Put(b []byte) []byte {
	h.CollStep.Put(b)
	binary.LittleEndian.PutUint64(b[8:], h.Length)
	b[16] = h.KeyBytes
	copy(b[17:], h.Key[:])
	return b[:CollTargetBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (h *CollTarget) Parse(b []byte) bool {
	if !h.CollStep.Parse(b, CollTargetBytes) {
		return false
	}
	h.Length, h.KeyBytes = binary.LittleEndian.Uint64(b[8:]), b[16]
	copy(h.Key[:], b[17:])
	if h.Length == 0 || h.Length > MaxMessage || h.KeyBytes == 0 || h.KeyBytes > CollKey {
		return false
	}
	for _, v := range h.Key[h.KeyBytes:] {
		if v != 0 {
			return false
		}
	}
	return true
}

// CollPut says which bytes of a chunk the sender has put into the receiver's memory: Bytes of them, from Part.Offset
// on. It goes as AMCollStep.
type CollPut struct {
	CollChunk
	Bytes uint64
}

// Put encodes h at the start of b and returns the bytes used.
func (h *CollPut) Put(b []byte) []byte {
	h.CollChunk.Put(b)
	binary.LittleEndian.PutUint64(b[CollChunkBytes:], h.Bytes)
	return b[:CollPutBytes]
}

// Parse decodes what a peer sent and reports whether it is valid: no more bytes than are left of the chunk.
func (h *CollPut) Parse(b []byte) bool {
	if len(b) != CollPutBytes || !h.CollChunk.Parse(b[:CollChunkBytes]) {
		return false
	}
	h.Bytes = binary.LittleEndian.Uint64(b[CollChunkBytes:])
	return h.Bytes != 0 && h.Bytes <= uint64(h.Part.Length)
}
