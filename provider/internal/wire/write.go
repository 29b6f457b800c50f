package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/internal/hot"
)

// Bits of a write's or notice's flags.
const (
	WriteAck  uint64 = hot.WriteAck  // the initiator waits for the answer, also on success
	WriteData uint64 = hot.WriteData // the CQ data is valid
	WriteLast uint64 = hot.WriteLast // EndsOperation
	WriteEnds uint64 = hot.WriteEnds // EndsElement; both: EndsShared
	// WriteElements says that the message has several elements ([Element]), whose number is its header. Key is how many
	// elements of the request's messages before it the answer is for, too, and each element says what it ends.
	WriteElements uint64 = hot.WriteElements
	WriteRest     uint64 = hot.WriteRest // with WriteData: the end of the one element, of Length bytes
)

// Write goes with a piece of a write.
type Write struct {
	Key     uint64
	Request uint64
	Flags   uint64
	Data    uint64
	Length  uint64 // bytes of the whole operation, with CQ data only
}

// maxBefore is the most that Key is of a message of several elements.
const maxBefore = 1 << 32

// Ends is what the message ends.
func (w *Write) Ends() Ends { return Ends(w.Flags / WriteLast & 3) }

// SetEnds sets what the message ends, which Flags does not say yet.
func (w *Write) SetEnds(e Ends) { w.Flags |= uint64(e) * WriteLast }

// Put encodes w at the start of b and returns the bytes used.
func (w *Write) Put(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], w.Key)
	le.PutUint64(b[8:], w.Request)
	le.PutUint64(b[16:], w.Flags)
	if w.Flags&WriteData == 0 {
		return b[:WriteBytes]
	}
	le.PutUint64(b[24:], w.Data)
	le.PutUint64(b[32:], w.Length)
	return b[:WriteDataBytes]
}

// Parse decodes what a peer sent and reports whether it is valid.
func (w *Write) Parse(b []byte) bool {
	if len(b) != WriteBytes && len(b) != WriteDataBytes {
		return false
	}
	le := binary.LittleEndian
	*w = Write{Key: le.Uint64(b[0:]), Request: le.Uint64(b[8:]), Flags: le.Uint64(b[16:])}
	if len(b) > WriteBytes {
		w.Data, w.Length = le.Uint64(b[24:]), le.Uint64(b[32:])
	}
	if w.Flags&WriteElements != 0 && (w.Key > maxBefore || w.Flags&(WriteLast|WriteEnds|WriteRest) != 0) {
		return false
	}
	return w.Flags&^(WriteAck|WriteData|WriteLast|WriteEnds|WriteElements|WriteRest) == 0 &&
		w.Flags&(WriteData|WriteRest) != WriteRest && (w.Flags&WriteData != 0) == (len(b) > WriteBytes)
}

// Span is the range that the target is to admit for a message of n bytes at addr: its own, or all of the element
// that it is the end of. false: there is no such element.
func (w *Write) Span(addr, n uint64) (start, length uint64, ok bool) {
	if w.Flags&WriteRest == 0 {
		return addr, n, true
	}
	return addr + n - w.Length, w.Length, w.Length >= n && addr >= w.Length-n
}
