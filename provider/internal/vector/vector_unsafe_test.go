package vector

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
)

// cut makes a vector of a buffer, in parts of chance, some of them empty.
func cut(r *rand.Rand, b []byte) (iov []fi.IOVec) {
	for at := 0; at < len(b); {
		n := min(r.IntN(20), len(b)-at)
		iov = append(iov, fi.IOVec{Base: uintptr(unsafe.Pointer(&b[at])), Len: uint64(n)})
		at += n
	}
	return append(iov, fi.IOVec{})
}

// TestWindow: a window has the bytes of a range of the vector, in pieces that are not empty, as far as that reaches.
func TestWindow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 200)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for range 2000 {
		iov := cut(r, b)
		at, n := r.IntN(len(b)+10), r.IntN(len(b)+10)
		want := b[min(at, len(b)):min(at+n, len(b))]
		before := fi.IOVec{Len: 77}
		got := Window([]fi.IOVec{before}, iov, uint64(at), uint64(n))
		all := make([]byte, len(want))
		for _, v := range got[1:] {
			if v.Len == 0 {
				t.Fatal("a piece without bytes")
			}
		}
		if Gather(all, got[1:]); !bytes.Equal(all, want) || got[0] != before {
			t.Fatalf("%d bytes at %d: %d, want %d", n, at, all, want)
		}
		sum := uint64(0)
		for _, v := range got[1:] {
			sum += v.Len
		}
		if sum != uint64(len(want)) {
			t.Fatalf("%d bytes at %d: a window of %d", n, at, sum)
		}
	}
}

// TestGatherer: what is gathered in steps is the vector's bytes in their order.
func TestGatherer(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, 300)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for range 200 {
		g, got := Gatherer{IOV: cut(r, b)}, make([]byte, 0, len(b))
		for len(got) < len(b) {
			n := min(r.IntN(40), len(b)-len(got))
			g.Next(got[len(got) : len(got)+n])
			got = got[:len(got)+n]
		}
		if !bytes.Equal(got, b) {
			t.Fatal("bytes differ")
		}
	}
}
