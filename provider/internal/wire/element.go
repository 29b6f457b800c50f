package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/internal/hot"
)

// Element is one element of a message that has several: of a write ([WriteElements]), behind whose elements their bytes
// follow in their order, or of a read ([Read].Elements).
type Element struct {
	Key  uint64
	Addr uint64 // in the region, as peers name it
	Len  uint64 // bytes, at most MaxMessage
	Ends Ends
}

const (
	// MaxElements is how many elements a message has at most.
	MaxElements = 128
	// ElementBytes is the size of an Element in a message.
	ElementBytes = hot.ElementBytes
	// endsAt is the place of an element's Ends in the word of its length.
	endsAt = 56
)

// Put encodes l at the start of b.
func (l *Element) Put(b []byte) {
	le := binary.LittleEndian
	le.PutUint64(b[0:], l.Key)
	le.PutUint64(b[8:], l.Addr)
	le.PutUint64(b[16:], l.Len|uint64(l.Ends)<<endsAt)
}

// ParseElements appends the n elements that a payload begins with to an array, so that what is checked is what is used,
// and returns what follows them, and how many bytes the elements are. false: it does not begin with 1 to MaxElements
// elements, or one is longer than a message, or all of them together are.
func ParseElements(to []Element, payload []byte, n uint64) (list []Element, rest []byte, total uint64, ok bool) {
	if n == 0 || n > MaxElements || n*ElementBytes > uint64(len(payload)) {
		return to, nil, 0, false
	}
	le := binary.LittleEndian
	for ; n != 0; n-- {
		size := le.Uint64(payload[16:])
		l := Element{le.Uint64(payload[0:]), le.Uint64(payload[8:]), size & (1<<endsAt - 1), Ends(size >> endsAt)}
		if l.Len > MaxMessage || !l.Ends.valid() {
			return to, nil, 0, false
		}
		to, total, payload = append(to, l), total+l.Len, payload[ElementBytes:]
	}
	return to, payload, total, total <= MaxMessage
}
