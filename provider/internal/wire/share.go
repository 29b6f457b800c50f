package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/claim"
)

// Chunks of a share are a quarter of the operation within these bounds, in bytes.
const (
	MinShareChunk = 32 << 10
	MaxShareChunk = 256 << 10
)

// ShareChunk is the size of a chunk of an operation of n bytes, whole pages.
func ShareChunk(n uint64) uint64 { return min(max(n/4, MinShareChunk), MaxShareChunk) &^ 4095 }

// Share offers the target a share of an operation that the initiator does.
type Share struct {
	Key   uint64 // of the region; with List the bytes of all pieces
	Local uint64 // address of the initiator's buffer; with List of its array of pieces
	Want  uint64 // bytes; with List pieces
	Chunk uint32 // bytes; with List pieces
	Round uint16
	Read  bool
	List  bool // the operation is of a list of pieces: the target reads the array, [Piece], from the initiator's memory
}

// Piece is one piece of a list, as it is in the initiator's memory.
type Piece struct {
	Local uint64 // its address in the initiator's process
	Addr  uint64 // in the target's region, as peers name it
	Len   uint64 // bytes
	Key   uint64 // of the region
}

// PieceBytes is the size of a Piece.
const PieceBytes = 32

// Bits of the last two bytes of a Share.
const (
	shareRead = 1 << iota
	shareList
)

// Put encodes s at the start of b and returns the bytes used.
func (s *Share) Put(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], s.Key)
	le.PutUint64(b[8:], s.Local)
	le.PutUint64(b[16:], s.Want)
	le.PutUint32(b[24:], s.Chunk)
	le.PutUint16(b[28:], s.Round)
	flags := uint16(0)
	if s.Read {
		flags |= shareRead
	}
	if s.List {
		flags |= shareList
	}
	le.PutUint16(b[30:], flags)
	return b[:ShareBytes]
}

// Parse refuses a chunk size that would not cut the operation into a number of
// chunks that the claim word can count.
func (s *Share) Parse(b []byte) bool {
	if len(b) != ShareBytes {
		return false
	}
	le := binary.LittleEndian
	flags := le.Uint16(b[30:])
	*s = Share{
		Key: le.Uint64(b[0:]), Local: le.Uint64(b[8:]), Want: le.Uint64(b[16:]),
		Chunk: le.Uint32(b[24:]), Round: le.Uint16(b[28:]), Read: flags&shareRead != 0,
		List: flags&shareList != 0,
	}
	least, most, size := uint32(MinShareChunk), uint32(MaxShareChunk), s.Want
	if s.List {
		least, most, size = 1, hw.MaxPieces, s.Want*PieceBytes
	}
	return flags&^(shareRead|shareList) == 0 && s.Chunk >= least && s.Chunk <= most &&
		s.Want != 0 && s.Want <= MaxMessage && claim.Chunks(s.Want, uint64(s.Chunk)) <= claim.MaxChunks &&
		s.Local+size >= s.Local
}
