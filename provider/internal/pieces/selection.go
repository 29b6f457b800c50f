package pieces

import (
	"fmt"
	"math/bits"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
)

// Selection are the elements of a post in its order: all of a list, or picks.
type Selection struct {
	List  *dataplane.List
	Picks []uint32 // elements, nil: all
	run   int      // of the last element that was found
}

// Bits are the picks of the elements whose bits are set: element n is bit n%64 of word n/64.
func Bits(words []uint64) []uint32 {
	n := 0
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	picks := make([]uint32, 0, n)
	for i, w := range words {
		for ; w != 0; w &= w - 1 {
			picks = append(picks, uint32(i*64+bits.TrailingZeros64(w)))
		}
	}
	return picks
}

// Len is the number of elements.
func (s *Selection) Len() int {
	if s.Picks == nil {
		return int(s.List.Count)
	}
	return len(s.Picks)
}

// Number is that of the i-th element.
func (s *Selection) Number(i int) uint32 {
	if s.Picks == nil {
		return uint32(i)
	}
	return s.Picks[i]
}

// At returns the i-th element.
func (s *Selection) At(i int) dataplane.Element { return s.List.At(s.Number(i), &s.run) }

// Bytes is the number of bytes of the elements.
func (s *Selection) Bytes() uint64 {
	if s.Picks == nil {
		return s.List.Bytes
	}
	return s.BytesTo(len(s.Picks))
}

// BytesTo is the number of bytes of the elements before the i-th.
func (s *Selection) BytesTo(end int) (total uint64) {
	for i := range end {
		e := s.At(i)
		total += e.Len
	}
	return total
}

// Direct is the number of bytes of the elements from a place to before another that the posting thread can copy.
func (s *Selection) Direct(from, end int) (total uint64) {
	for i := from; i < end; i++ {
		if e := s.At(i); e.Direct {
			total += e.Len
		}
	}
	return total
}

// Check finds that the picks are elements of the list. fi.EINVAL: they are not.
func (s *Selection) Check() error {
	for i, n := range s.Picks {
		if n >= s.List.Count {
			return fmt.Errorf("pick %d is element %d of %d: %w", i, n, s.List.Count, fi.EINVAL)
		}
	}
	return nil
}

// Mapped takes the elements that may go by a mapping out of the selection, and returns them.
func (s *Selection) Mapped() (mapped []uint32) {
	left := []uint32{}
	for i := range s.Len() {
		if n := s.Number(i); s.At(i).Mapped {
			mapped = append(mapped, n)
		} else {
			left = append(left, n)
		}
	}
	*s = Selection{List: s.List, Picks: left}
	return mapped
}
