package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/provider/claim"
)

// Chunks of a share are a quarter of the operation within these bounds, in bytes.
const (
	MinShareChunk = 32 << 10
	MaxShareChunk = 256 << 10
)

// Share offers the target a share of an operation that the initiator does.
type Share struct {
	Key   uint64
	Local uint64 // address of the initiator's buffer
	Want  uint64 // bytes
	Chunk uint32 // bytes
	Round uint16
	Read  bool
}

// Put encodes s at the start of b and returns the bytes used.
func (s *Share) Put(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], s.Key)
	le.PutUint64(b[8:], s.Local)
	le.PutUint64(b[16:], s.Want)
	le.PutUint32(b[24:], s.Chunk)
	le.PutUint16(b[28:], s.Round)
	le.PutUint16(b[30:], 0)
	if s.Read {
		b[30] = 1
	}
	return b[:ShareBytes]
}

// Parse refuses a chunk size that would not cut the operation into a number of
// chunks that the claim word can count.
func (s *Share) Parse(b []byte) bool {
	if len(b) != ShareBytes {
		return false
	}
	le := binary.LittleEndian
	*s = Share{
		Key: le.Uint64(b[0:]), Local: le.Uint64(b[8:]), Want: le.Uint64(b[16:]),
		Chunk: le.Uint32(b[24:]), Round: le.Uint16(b[28:]), Read: b[30] == 1,
	}
	return le.Uint16(b[30:]) <= 1 && s.Chunk >= MinShareChunk && s.Chunk <= MaxShareChunk &&
		s.Want != 0 && s.Want <= MaxMessage && claim.Chunks(s.Want, uint64(s.Chunk)) <= claim.MaxChunks &&
		s.Local+s.Want >= s.Local
}
