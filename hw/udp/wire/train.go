package wire

import "encoding/binary"

// Train writes and reads Data packets that carry nothing but a stream frame each
// and follow one another: they are alike but for the numbers and offsets, which
// grow from packet to packet.
type Train struct {
	head   [TrainHeader]byte // of the packet before
	number uint64
	offset uint64
	n      uint64 // bytes of each
}

// TrainHeader is the size in bytes of what is before the bytes of the stream.
const TrainHeader = HeaderSize + StreamHeader

// Where the fields are that differ.
const (
	numberAt = 16
	offsetAt = HeaderSize + 4
)

// NewTrain begins a train with a packet that has header h and n bytes at offset of
// the stream.
func NewTrain(h *Header, offset uint64, n int) Train {
	t := Train{number: h.Number, offset: offset, n: uint64(n)}
	h.Put(t.head[:])
	PutStream(t.head[HeaderSize:], offset, n)
	return t
}

// Put writes the header of the next packet, with more flags, into b, which is
// TrainHeader long.
func (t *Train) Put(b []byte, flags uint8) {
	copy(b, t.head[:])
	b[2] |= flags
	binary.LittleEndian.PutUint64(b[numberAt:], t.number)
	binary.LittleEndian.PutUint64(b[offsetAt:], t.offset)
	t.number++
	t.offset += t.n
}

// MayFollow tells at little cost that rest may begin with packets of a train behind
// packet b.
func MayFollow(b, rest []byte) bool {
	return len(b) > TrainHeader && len(rest) >= len(b) && TypeOf(b) == TypeData && Kind(rest[HeaderSize]) == KindStream
}

// Follow begins with packet b, which is whole and may be of any kind, a train of
// packets of the same size with numbers from number on and the stream from offset
// on. False: b is no packet that a train can follow.
func (t *Train) Follow(b []byte, number, offset uint64) bool {
	var h Header
	if len(b) <= TrainHeader || TypeOf(b) != TypeData || h.Parse(b) != nil || h.Flags&FlagAuth != 0 {
		return false
	}
	h.Number = number
	*t = NewTrain(&h, offset, len(b)-TrainHeader)
	return true
}

// Next returns the stream's bytes in b if that is the next packet of the train.
// Else it is to be parsed.
func (t *Train) Next(b []byte) ([]byte, bool) {
	if uint64(len(b)) != TrainHeader+t.n || t.number >= MaxNumber || t.offset >= MaxOffset-t.n {
		return nil, false
	}
	le := binary.LittleEndian
	h := t.head[:]
	if le.Uint64(b) != le.Uint64(h) || le.Uint64(b[8:]) != le.Uint64(h[8:]) || le.Uint32(b[HeaderSize:]) != le.Uint32(h[HeaderSize:]) ||
		le.Uint64(b[numberAt:]) != t.number || le.Uint64(b[offsetAt:]) != t.offset {
		return nil, false
	}
	t.number++
	t.offset += t.n
	return b[TrainHeader:], true
}
