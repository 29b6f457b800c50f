package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// Done says how units of an operation have ended: bytes of a read or of
// an atomic's result, messages of a write. Of a read it says where these bytes
// begin in it, because data that was asked for before may follow; of a failed write of several elements, which of
// them was refused, and nothing was done of it and those behind it in its message; else at is NoPlace. Each element of
// a write is a unit.
type Done struct {
	Status fi.Errno
	Units  uint64
	At     uint64
}

// NoPlace is the At of what has no place in a read.
const NoPlace = uint64(hot.NoPlace)

// Put encodes d at the start of b and returns the bytes used.
func (d *Done) Put(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[0:], uint64(d.Status))
	binary.LittleEndian.PutUint64(b[8:], d.Units)
	binary.LittleEndian.PutUint64(b[16:], d.At)
	return b[:DoneBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (d *Done) Parse(b []byte) bool {
	if len(b) != DoneBytes {
		return false
	}
	status := binary.LittleEndian.Uint64(b[0:])
	*d = Done{fi.Errno(status), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])}
	return status < 1024
}
