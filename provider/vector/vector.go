// Package vector copies and cuts vectors of memory. The memory is C's, or the caller keeps it reachable.
package vector

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/mem"
)

// Window appends the pieces of a vector from offset to offset+n, as far as the vector reaches.
func Window(to, iov []fi.IOVec, offset, n uint64) []fi.IOVec {
	for _, v := range iov {
		if offset >= v.Len {
			offset -= v.Len
			continue
		}
		part := min(v.Len-offset, n)
		if part == 0 {
			break
		}
		to = append(to, fi.IOVec{Base: v.Base + uintptr(offset), Len: part})
		offset = 0
		n -= part
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
