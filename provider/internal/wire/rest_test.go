package wire

import "testing"

// TestWriteRest: what ends an element is that element's end, and none without data, longer than the element, or of one
// that begins before address 0.
func TestWriteRest(t *testing.T) {
	var b [WriteDataBytes]byte
	for _, c := range []struct {
		flags          uint64
		addr, n, whole uint64
		start, length  uint64
		parses, ok     bool
	}{
		{WriteData | WriteLast, 100, 10, 50, 100, 10, true, true},
		{WriteData | WriteLast | WriteRest, 100, 10, 50, 60, 50, true, true},
		{WriteData | WriteLast | WriteRest, 40, 10, 50, 0, 50, true, true},
		{WriteData | WriteLast | WriteRest, 39, 10, 50, 0, 0, true, false},
		{WriteData | WriteLast | WriteRest, 100, 51, 50, 0, 0, true, false},
		{WriteLast | WriteRest, 100, 10, 50, 0, 0, false, false},
		{WriteData | WriteRest<<1, 100, 10, 50, 0, 0, false, false},
	} {
		w := Write{Key: 1, Flags: c.flags, Length: c.whole}
		var got Write
		if parses := got.Parse(w.Put(b[:])); parses != c.parses || !parses {
			if parses != c.parses {
				t.Errorf("%+v: parses %v", c, parses)
			}
			continue
		}
		start, length, ok := got.Span(c.addr, c.n)
		if ok != c.ok || ok && (start != c.start || length != c.length) {
			t.Errorf("%+v: %d bytes at %d, %v", c, length, start, ok)
		}
	}
}
