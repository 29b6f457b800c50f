package wire

import "encoding/binary"

// Read asks for length bytes, which belong at offset at of the operation.
type Read struct {
	Key     uint64
	Request uint64
	Length  uint64
	At      uint64
	Ends    Ends
}

// Put encodes r at the start of b and returns the bytes used.
func (r *Read) Put(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], r.Key)
	le.PutUint64(b[8:], r.Request)
	le.PutUint64(b[16:], r.Length)
	le.PutUint64(b[24:], r.At)
	le.PutUint64(b[32:], uint64(r.Ends))
	return b[:ReadBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (r *Read) Parse(b []byte) bool {
	if len(b) != ReadBytes {
		return false
	}
	le := binary.LittleEndian
	*r = Read{Key: le.Uint64(b[0:]), Request: le.Uint64(b[8:]), Length: le.Uint64(b[16:]),
		At: le.Uint64(b[24:]), Ends: Ends(b[32])}
	return r.Length <= MaxMessage && r.At <= MaxMessage && le.Uint64(b[32:]) <= uint64(EndsShared)
}
