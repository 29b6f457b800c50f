package wire

import (
	"bytes"
	"reflect"
	"testing"
)

// TestRegion encodes and decodes questions about a region's memory, and answers.
func TestRegion(t *testing.T) {
	q, a := RegionRequest{1, 2, 3, 4, 5}, RegionAnswer{6, 7, 8}
	var gotQ RegionRequest
	var gotA RegionAnswer
	request, answer := q.Append(nil), a.Append(nil)
	if !gotQ.Parse(request) || gotQ != q || !gotA.Parse(answer) || gotA != a {
		t.Errorf("%+v and %+v became %+v and %+v", q, a, gotQ, gotA)
	}
	for n := range 60 {
		b := make([]byte, n)
		if gotQ.Parse(b) != (n == len(request)) || gotA.Parse(b) != (n == len(answer)) {
			t.Errorf("%d bytes", n)
		}
	}
}

// FuzzCopyRequest parses requests to copy: what parses is what was put together.
func FuzzCopyRequest(f *testing.F) {
	q := CopyRequest{1, 2, 3, 4, 5, []CopyPiece{{6, 7, 8}, {9, 10, 11}}}
	whole := q.Append(nil)
	var same CopyRequest
	if !same.Parse(whole) || !reflect.DeepEqual(same, q) {
		f.Fatalf("%+v became %+v", q, same)
	}
	for n := range len(whole) + 1 {
		f.Add(whole[:n])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var q CopyRequest
		if ok := q.Parse(b); ok != (len(b) > copyHead && (len(b)-copyHead)%copyEach == 0) {
			t.Fatalf("%d bytes: %t", len(b), ok)
		} else if ok && !bytes.Equal(q.Append(nil), b) {
			t.Fatalf("%x is not %x", q.Append(nil), b)
		}
	})
}
