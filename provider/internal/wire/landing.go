package wire

import "encoding/binary"

// Landing is the receiver's memory for a message, into which its sender may put.
type Landing struct {
	Operation uint64 // of the receiver, comes back in each AMHelped
	Addr      uint64
	Want      uint64 // bytes of the message that go there
}

// Put encodes l at the start of b and returns the bytes used.
func (l *Landing) Put(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[0:], l.Operation)
	binary.LittleEndian.PutUint64(b[8:], l.Addr)
	binary.LittleEndian.PutUint64(b[16:], l.Want)
	return b[:LandingBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (l *Landing) Parse(b []byte) bool {
	if len(b) != LandingBytes {
		return false
	}
	l.Operation = binary.LittleEndian.Uint64(b[0:])
	l.Addr = binary.LittleEndian.Uint64(b[8:])
	l.Want = binary.LittleEndian.Uint64(b[16:])
	return l.Want != 0 && l.Want <= MaxMessage && l.Addr+l.Want >= l.Addr
}
