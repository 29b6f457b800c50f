package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
)

// CollNote says that an operation has failed at the sender or, with status 0,
// that the sender has left the group. In the latter case group is the
// sender's number of it.
type CollNote struct {
	Group  uint64   // of a sender that leaves
	Seq    uint32   // of the operation that failed
	Status fi.Errno // why, below 1024; 0: the sender leaves
}

// Put encodes h at the start of b and returns the bytes used.
func (h *CollNote) Put(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[0:], h.Group)
	binary.LittleEndian.PutUint32(b[8:], h.Seq)
	binary.LittleEndian.PutUint32(b[12:], uint32(h.Status))
	return b[:CollNoteBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (h *CollNote) Parse(b []byte) bool {
	if len(b) != CollNoteBytes {
		return false
	}
	h.Group = binary.LittleEndian.Uint64(b[0:])
	h.Seq = binary.LittleEndian.Uint32(b[8:])
	v := binary.LittleEndian.Uint32(b[12:])
	h.Status = fi.Errno(v)
	return v < 1024
}
