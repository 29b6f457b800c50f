package pieces

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Chunks are the elements of a selection, cut into chunks of some pieces each, of which two processes copy a share. The
// pieces are in the order of the elements. Neighbours are joined, and long elements cut, to at most wire.MaxShareChunk.
type Chunks struct {
	Pieces []wire.Piece // in place until Cut
	Per    uint64       // pieces of a chunk
	at     []int        // of each piece, where in the selection its first element is
}

// Cut fills in the chunks of a selection of total bytes, each of about chunk bytes. It uses the memory that the chunks
// have.
func (c *Chunks) Cut(sel *Selection, total, chunk uint64) {
	c.Pieces, c.at = c.Pieces[:0], c.at[:0]
	last := &wire.Piece{}
	for i := range sel.Len() {
		el := sel.At(i)
		if last.Key == el.Key && last.Local+last.Len == el.Local && last.Addr+last.Len == el.Remote &&
			el.Len <= wire.MaxShareChunk-last.Len {
			last.Len += el.Len
			continue
		}
		for el.Len != 0 {
			n := min(el.Len, wire.MaxShareChunk)
			c.Pieces = append(c.Pieces, wire.Piece{Local: el.Local, Addr: el.Remote, Len: n, Key: el.Key})
			c.at = append(c.at, i)
			last = &c.Pieces[len(c.Pieces)-1]
			el.Local, el.Remote, el.Len = el.Local+n, el.Remote+n, el.Len-n
		}
	}
	each := max(total/max(uint64(len(c.Pieces)), 1), 1)
	c.Per = min(max(chunk/each, 1), hw.MaxPieces)
}

// N is the number of chunks.
func (c *Chunks) N() uint64 { return claim.Chunks(uint64(len(c.Pieces)), c.Per) }

// Fill fills in the pieces of a chunk, and returns the number of the first.
func (c *Chunks) Fill(to *Batch, chunk uint64) int {
	first := int(chunk * c.Per)
	list := c.Pieces[first:min(first+int(c.Per), len(c.Pieces))]
	for i := range list {
		p := &list[i]
		to.Local[i], to.Remote[i] = hw.Span{Addr: p.Local, Len: p.Len}, hw.Span{Addr: p.Addr, Len: p.Len}
		to.Keys[i] = p.Key
	}
	to.N = len(list)
	return first
}

// First is where in the selection the first element of a chunk is.
func (c *Chunks) First(chunk uint64) int { return c.at[chunk*c.Per] }

// Position is where in the selection the first element is that is not known to be copied, given the bytes that are from
// a piece on.
func (c *Chunks) Position(piece int, moved uint64) int {
	for piece < len(c.Pieces)-1 && moved >= c.Pieces[piece].Len {
		moved -= c.Pieces[piece].Len
		piece++
	}
	return c.at[piece]
}
