package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/internal/hot"
)

// Read asks for length bytes, which belong at offset at of the operation.
type Read struct {
	Key     uint64
	Request uint64
	Length  uint64
	At      uint64
	Ends    Ends
	// Elements says that the message has several elements ([Element]), Length bytes in all, whose number is its header.
	// Key is 0, and each element says what it ends.
	Elements bool
}

// Put encodes r at the start of b and returns the bytes used.
func (r *Read) Put(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], r.Key)
	le.PutUint64(b[8:], r.Request)
	le.PutUint64(b[16:], r.Length)
	le.PutUint64(b[24:], r.At)
	ends := uint64(r.Ends)
	if r.Elements {
		ends |= hot.ReadElements
	}
	le.PutUint64(b[32:], ends)
	return b[:ReadBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (r *Read) Parse(b []byte) bool {
	if len(b) != ReadBytes {
		return false
	}
	le := binary.LittleEndian
	ends := le.Uint64(b[32:])
	*r = Read{Key: le.Uint64(b[0:]), Request: le.Uint64(b[8:]), Length: le.Uint64(b[16:]),
		At: le.Uint64(b[24:]), Ends: Ends(ends), Elements: ends == hot.ReadElements}
	return r.Length <= MaxMessage && r.At <= MaxMessage && (ends <= uint64(EndsShared) || r.Elements && r.Key == 0)
}
