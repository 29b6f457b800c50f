package wire

import (
	"bytes"
	"encoding/binary"
	"math"
)

// Train writes and reads Data packets that carry nothing but one Stream, Data or Put
// frame each and follow one another: they are alike but for the numbers and the places
// of their bytes, which grow from packet to packet.
type Train struct {
	head   [HeaderSize + PutHeader]byte // of the packet before
	size   int                          // of head
	number uint64
	place  uint64 // the offset, or the address of a put
	most   uint64 // places are below
	short  bool   // only the place's lower 32 bits are written
	n      uint64 // bytes of each
}

// TrainHeader is the size in bytes of what is before the bytes of the stream.
const TrainHeader = HeaderSize + StreamHeader

// numberAt is where the number is, of 4 bytes. The place is at the end of the head.
const numberAt = 12

// placeAt is where the place begins.
func (t *Train) placeAt() int {
	if t.short {
		return t.size - 4
	}
	return t.size - 8
}

// trainHeader is the size of a frame's header if trains are made of it, else 0.
func trainHeader(k Kind) int {
	switch k {
	case KindStream:
		return StreamHeader
	case KindData, KindPut:
		return headerOf(k)
	}
	return 0
}

// begin writes the header and leaves the frame to the caller.
func (t *Train) begin(h *Header, kind Kind, place uint64, n int) []byte {
	*t = Train{size: HeaderSize + trainHeader(kind), number: h.Number, place: place, most: MaxOffset, n: uint64(n)}
	t.short = kind == KindStream
	if kind == KindPut {
		t.most = math.MaxUint64
	}
	h.Put(t.head[:])
	return t.head[HeaderSize:]
}

// NewTrain begins a train with a packet that has header h and n bytes at offset of
// the stream.
func NewTrain(h *Header, offset uint64, n int) (t Train) {
	PutStream(t.begin(h, KindStream, offset, n), offset)
	return t
}

// NewDataTrain begins one with n bytes at offset of a get.
func NewDataTrain(h *Header, op uint32, offset uint64, n int) (t Train) {
	PutData(t.begin(h, KindData, offset, n), op, offset, n)
	return t
}

// NewPutTrain begins one with n bytes of a put.
func NewPutTrain(h *Header, op uint32, key, addr uint64, n int) (t Train) {
	PutPut(t.begin(h, KindPut, addr, n), op, key, addr, n)
	return t
}

// HeadSize is the size in bytes of what Put writes, before the bytes themselves.
func (t *Train) HeadSize() int { return t.size }

// Put writes the header of the next packet of a train of puts or gets, with more flags,
// into b, which is HeadSize long.
func (t *Train) Put(b []byte, flags uint8) {
	copy(b, t.head[:t.size])
	b[2] |= flags
	binary.LittleEndian.PutUint32(b[numberAt:], uint32(t.number))
	binary.LittleEndian.PutUint64(b[t.size-8:], t.place)
	t.number++
	t.place += t.n
}

// PutRow writes the headers of the next packets, which fill row, of a train of the stream; the
// last one has more flags.
func (t *Train) PutRow(row []byte, last uint8) {
	head, each := (*[TrainHeader]byte)(t.head[:]), TrainHeader+int(t.n)
	for number, place := t.number, t.place; len(row) >= each; row = row[each:] {
		b := (*[TrainHeader]byte)(row)
		*b = *head
		binary.LittleEndian.PutUint32(b[numberAt:], uint32(number))
		binary.LittleEndian.PutUint32(b[TrainHeader-4:], uint32(place))
		number, place = number+1, place+t.n
		if len(row) < 2*each {
			b[2] |= last
			t.number, t.place = number, place
		}
	}
}

// MayFollow reports at little cost whether rest may begin with packets of a train behind
// packet b.
func MayFollow(b, rest []byte) bool {
	return len(b) > TrainHeader && len(rest) >= len(b) && TypeOf(b) == TypeData &&
		trainHeader(Kind(rest[HeaderSize])) > 0
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

// FollowPiece begins with packet b, which carries one Data or Put frame and nothing
// else, a train of packets of the same size that go on where b ends. False: b is no
// such packet.
func (t *Train) FollowPiece(b []byte) bool {
	var h Header
	var f Frame
	if len(b) <= TrainHeader || TypeOf(b) != TypeData || h.Parse(b) != nil || h.Flags&FlagAuth != 0 {
		return false
	}
	if k := Kind(b[HeaderSize]); k != KindData && k != KindPut {
		return false
	}
	if rest, err := f.Next(b[HeaderSize:]); err != nil || len(rest) > 0 {
		return false
	}
	h.Number++
	n := len(f.Data)
	if f.Kind == KindData {
		*t = NewDataTrain(&h, f.Op, f.Offset+uint64(n), n)
	} else {
		*t = NewPutTrain(&h, f.Op, f.Key, f.Addr+uint64(n), n)
	}
	return true
}

// Next returns the bytes in b if that is the next packet of the train. Else it is to
// be parsed.
func (t *Train) Next(b []byte) ([]byte, bool) {
	if uint64(len(b)) != uint64(t.size)+t.n || t.number >= MaxNumber || t.place >= t.most-t.n {
		return nil, false
	}
	le := binary.LittleEndian
	h, end := t.head[:], t.placeAt()
	if le.Uint64(b) != le.Uint64(h) || le.Uint32(b[8:]) != le.Uint32(h[8:]) ||
		!bytes.Equal(b[HeaderSize:end], h[HeaderSize:end]) ||
		le.Uint32(b[numberAt:]) != uint32(t.number) ||
		t.short && le.Uint32(b[end:]) != uint32(t.place) || !t.short && le.Uint64(b[end:]) != t.place {
		return nil, false
	}
	t.number++
	t.place += t.n
	return b[t.size:], true
}

// Count returns how many packets at the beginning of b are the next of the train. It
// goes no further with the train.
func (t *Train) Count(b []byte) int {
	c, n, each := *t, 0, t.size+int(t.n)
	for ; len(b) >= each; b = b[each:] {
		if _, ok := c.Next(b[:each]); !ok {
			break
		}
		n++
	}
	return n
}

// Skip takes the next packet off *b, which Count has found to be the train's, and
// returns its bytes. It does not go on with the train.
func (t *Train) Skip(b *[]byte) []byte {
	each := t.size + int(t.n)
	data := (*b)[t.size:each]
	*b = (*b)[each:]
	return data
}

// Kind, Op, Key and Place are those of the next packet's frame, of which Op is for Data
// and Put, Key for Put; Len is how many bytes each carries.
func (t *Train) Kind() Kind { return Kind(t.head[HeaderSize]) }

// Op is the number of the operation.
func (t *Train) Op() uint32 { return binary.LittleEndian.Uint32(t.head[HeaderSize+4:]) }

// Key is the region's key.
func (t *Train) Key() uint64 { return binary.LittleEndian.Uint64(t.head[HeaderSize+8:]) }

// Place is the offset in the stream or the operation, or the address of a put.
func (t *Train) Place() uint64 { return t.place }

// Len is how many bytes each packet carries.
func (t *Train) Len() uint64 { return t.n }
