// Package vector walks, copies and cuts vectors: memory in pieces, of which an offset and a length select bytes.
// The memory is C's, or the caller keeps it reachable.
package vector

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/mem"
)

// Span is a range of a vector's bytes, taken piece by piece.
type Span struct {
	Offset, N uint64 // bytes before it, and of it, from the next piece on
}

// Take is what of the span is in the next piece, which has that many bytes: n bytes from byte at on, 0: none.
func (s *Span) Take(has uint64) (at, n uint64) {
	if s.Offset >= has {
		s.Offset -= has
		return 0, 0
	}
	at, n = s.Offset, min(has-s.Offset, s.N)
	s.Offset, s.N = 0, s.N-n
	return at, n
}

// Window appends the parts of a vector that hold its bytes from offset on, up to n of them, as far as it reaches. None
// is empty.
func Window(to, iov []fi.IOVec, offset, n uint64) []fi.IOVec {
	span := Span{offset, n}
	for _, v := range iov {
		if at, n := span.Take(v.Len); n != 0 {
			to = append(to, fi.IOVec{Base: v.Base + uintptr(at), Len: n})
		}
	}
	return to
}

// Gatherer copies a vector's bytes, some at a time.
type Gatherer struct {
	IOV []fi.IOVec // what is left
	at  uint64     // in the first of them
}

// Next copies the next bytes to dst, which is no longer than what is left.
func (g *Gatherer) Next(dst []byte) {
	for len(dst) > 0 && len(g.IOV) > 0 {
		v := &g.IOV[0]
		from := mem.Bytes(uint64(v.Base)+g.at, int(v.Len-g.at))
		n := mem.Stream(dst, from[:min(len(from), len(dst))])
		dst = dst[n:]
		if g.at += uint64(n); g.at == v.Len {
			g.IOV, g.at = g.IOV[1:], 0
		}
	}
}

// Gather copies a vector's bytes to dst, which is as long as all of them.
func Gather(dst []byte, iov []fi.IOVec) {
	g := Gatherer{IOV: iov}
	g.Next(dst)
}
