// Package vector walks, copies and cuts vectors: memory in several pieces, which an offset and a length select bytes of.
// The memory is C's, or the caller keeps it reachable.
package vector

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/mem"
)

// Cut appends the parts of a vector that hold its bytes from offset on, up to n of them, as far as it reaches: length
// is that of a piece in bytes, and part returns n bytes of a piece from byte at on. Empty pieces have no part. It
// allocates nothing where to has room.
func Cut[Piece, Part any](
	to []Part, pieces []Piece, offset, n uint64,
	length func(*Piece) uint64, part func(p *Piece, at, n uint64) Part,
) []Part {
	for i := range pieces {
		p := &pieces[i]
		has := length(p)
		if offset >= has {
			offset -= has
			continue
		}
		take := min(has-offset, n)
		if take == 0 {
			break
		}
		to = append(to, part(p, offset, take))
		offset, n = 0, n-take
	}
	return to
}

// Window is Cut of one local vector into another, without calls: posts make one.
func Window(to, iov []fi.IOVec, offset, n uint64) []fi.IOVec {
	for _, v := range iov {
		if offset >= v.Len {
			offset -= v.Len
			continue
		}
		take := min(v.Len-offset, n)
		if take == 0 {
			break
		}
		to = append(to, fi.IOVec{Base: v.Base + uintptr(offset), Len: take})
		offset, n = 0, n-take
	}
	return to
}

// Len is the length of a piece, for Cut.
func Len(v *fi.IOVec) uint64 { return v.Len }

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
