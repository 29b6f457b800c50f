package transport

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// FuzzMessage: a header that is accepted says how long its message is, and is written again as it was.
func FuzzMessage(f *testing.F) {
	b := make([]byte, HeaderBytes+5)
	m := Header{ID: 3, Head: 2, Index: 1, Seq: 9, Length: 3, Value: 77}
	m.Put(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, next, ok := Parse(b)
		if !ok {
			return
		}
		own := HeaderBytes + int(m.Head) + int(m.Length)
		more := b[kindAt]&MoreFollows != 0
		fits := next == 0 && own == len(b)
		if more {
			fits = next == (own+7)&^7 && next < len(b)
		}
		if !fits || m.ID >= uint8(hw.MaxAM) {
			t.Errorf("%d bytes are read as %+v, the next message at %d", len(b), m, next)
		}
		again := make([]byte, HeaderBytes)
		m.Put(again)
		mark(again, more)
		if !bytes.Equal(again, b[:HeaderBytes]) {
			t.Errorf("%x is read as %+v", b[:HeaderBytes], m)
		}
	})
}
