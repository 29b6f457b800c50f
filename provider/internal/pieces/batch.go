package pieces

import "github.com/weft-fabric/weft/hw"

// Batch is what a posting thread gives to the transport: pieces, and of each where in the selection its elements begin.
type Batch struct {
	hw.Pieces
	at [hw.MaxPieces]int
}

// Gather fills in the next pieces of a selection, from the i-th element on, and returns where it stopped. Neighbours
// are joined. Elements that the posting thread cannot copy are appended to left.
func (b *Batch) Gather(sel *Selection, i int, left *[]uint32) int {
	b.N = 0
	for end := sel.Len(); i < end; i++ {
		el := sel.At(i)
		if !el.Direct {
			*left = append(*left, sel.Number(i))
			continue
		}
		n := b.N
		if !b.Add(el.Local, el.Remote, el.Len, el.Key) {
			break
		}
		if b.N != n {
			b.at[n] = i
		}
	}
	return i
}

// Position returns which element of the selection is the first of which not all bytes are among those that are moved,
// given that not all pieces are.
func (b *Batch) Position(sel *Selection, moved uint64) int {
	n := 0
	for n+1 < b.N && moved >= b.Local[n].Len {
		moved -= b.Local[n].Len
		n++
	}
	for i := b.at[n]; ; i++ {
		el := sel.At(i)
		if !el.Direct {
			continue
		}
		if moved < el.Len || i+1 == sel.Len() {
			return i
		}
		moved -= el.Len
	}
}

// Leave appends the elements of the selection that are not copied: from a place on those that the posting thread cannot
// copy, and all from the one on that was the first to fail.
func (s *Selection) Leave(left []uint32, from, failed int) []uint32 {
	for i := from; i < s.Len(); i++ {
		if i >= failed || !s.At(i).Direct {
			left = append(left, s.Number(i))
		}
	}
	return left
}
