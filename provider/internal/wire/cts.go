package wire

import "encoding/binary"

// CTS asks the sender of a message for its first length bytes in fragments.
type CTS struct {
	Operation uint64 // of the receiver, comes back in each fragment
	Length    uint64
}

// Put encodes c at the start of b and returns the bytes used.
func (c *CTS) Put(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[0:], c.Operation)
	binary.LittleEndian.PutUint64(b[8:], c.Length)
	return b[:CTSBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (c *CTS) Parse(b []byte) bool {
	if len(b) != CTSBytes {
		return false
	}
	c.Operation = binary.LittleEndian.Uint64(b[0:])
	c.Length = binary.LittleEndian.Uint64(b[8:])
	return true
}
