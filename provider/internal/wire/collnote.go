package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
)

// CollNote says that an operation has failed at the sender or, with status 0,
// that the sender has left the group, or has taken the receiver's join. In these cases
// group is the sender's number of it.
type CollNote struct {
	Group  uint64   // of a sender without an operation
	Seq    uint32   // of the operation that failed
	Status fi.Errno // why, below 1024; 0: the sender leaves

	Withdrawn bool // of a sender that leaves: before it has joined
	Taken     bool // of a sender that does not leave: it has the receiver's join
}

// What stands in the place of the operation where there is none.
const (
	noteWithdrawn = 1
	noteTaken     = 2
)

// Put encodes h at the start of b and returns the bytes used.
func (h *CollNote) Put(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[0:], h.Group)
	seq := h.Seq
	switch {
	case h.Withdrawn:
		seq = noteWithdrawn
	case h.Taken:
		seq = noteTaken
	}
	binary.LittleEndian.PutUint32(b[8:], seq)
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
	h.Withdrawn, h.Taken = v == 0 && h.Seq == noteWithdrawn, v == 0 && h.Seq == noteTaken
	if h.Withdrawn || h.Taken {
		h.Seq = 0
	}
	return v < 1024
}
