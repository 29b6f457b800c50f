package wire

import (
	"bytes"
	"testing"
)

// TestKey encodes and decodes questions for a device's key, and answers.
func TestKey(t *testing.T) {
	var b [64]byte
	head := PutKeyAsk(b[:], 0x12345678)
	if link, ok := ParseKeyAsk(head, 0); !ok || link != 0x12345678 {
		t.Errorf("%#x, %t", link, ok)
	}
	for _, wrong := range [][]byte{nil, head[:7], b[:9], {0, 0, 0, 0, 0, 0, 0, 1}} {
		if _, ok := ParseKeyAsk(wrong, 0); ok {
			t.Errorf("%x is taken", wrong)
		}
	}
	if _, ok := ParseKeyAsk(head, 1); ok {
		t.Error("a question with a payload is taken")
	}
	for _, a := range []KeyAnswer{
		{Link: 7, Status: KeyHere, Key: []byte("a key")},
		{Link: 1 << 31, Status: KeyNever},
		{Status: KeyAbsent},
	} {
		var got KeyAnswer
		head := a.Put(b[:])
		if !got.Parse(head, 0) || got.Link != a.Link || got.Status != a.Status || !bytes.Equal(got.Key, a.Key) {
			t.Errorf("%+v became %+v", a, got)
		}
		if got.Parse(head, 1) || got.Parse(head[:7], 0) {
			t.Errorf("%+v with a payload, or cut, is taken", a)
		}
	}
	for _, wrong := range []KeyAnswer{
		{Status: KeyHere}, {Status: KeyNever, Key: []byte{1}}, {Status: KeyAbsent, Key: []byte{1}},
		{Status: KeyAbsent + 1},
	} {
		var got KeyAnswer
		if got.Parse(wrong.Put(b[:]), 0) {
			t.Errorf("%+v is taken", wrong)
		}
	}
}
