package recovery

import "slices"

// Span is bytes From to To of a stream, To not included.
type Span struct {
	From, To uint64
}

// Ranges is a set of bytes of a stream, as ascending spans that do not touch.
// The zero value is empty. One owner at a time. Adding costs time linear in the
// number of spans, which its user bounds.
type Ranges struct {
	spans []Span
}

// Len returns the number of spans.
func (r *Ranges) Len() int { return len(r.spans) }

// First returns the lowest span; Len is not 0.
func (r *Ranges) First() Span { return r.spans[0] }

// search returns the first span that ends at or after at.
func (r *Ranges) search(at uint64) int {
	lo, hi := 0, len(r.spans)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if r.spans[mid].To < at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Add puts the bytes of s into the set.
func (r *Ranges) Add(s Span) {
	if s.From >= s.To {
		return
	}
	i := r.search(s.From)
	j := i
	for j < len(r.spans) && r.spans[j].From <= s.To {
		s.From, s.To = min(s.From, r.spans[j].From), max(s.To, r.spans[j].To)
		j++
	}
	if i == j {
		r.spans = slices.Insert(r.spans, i, s)
		return
	}
	r.spans[i] = s
	r.spans = slices.Delete(r.spans, i+1, j)
}

// Remove takes the bytes of s out of the set.
func (r *Ranges) Remove(s Span) {
	if s.From >= s.To {
		return
	}
	i := r.search(s.From + 1)
	for i < len(r.spans) && r.spans[i].From < s.To {
		at := r.spans[i]
		switch {
		case at.From < s.From && at.To > s.To: // the middle
			r.spans[i].To = s.From
			r.spans = slices.Insert(r.spans, i+1, Span{s.To, at.To})
			return
		case at.From < s.From:
			r.spans[i].To = s.From
			i++
		case at.To > s.To:
			r.spans[i].From = s.To
			return
		default:
			r.spans = slices.Delete(r.spans, i, i+1)
		}
	}
}

// AddWithout puts the bytes of s that are not in except into the set.
func (r *Ranges) AddWithout(s Span, except *Ranges) {
	for i := except.search(s.From + 1); i < len(except.spans) && except.spans[i].From < s.To; i++ {
		r.Add(Span{s.From, except.spans[i].From})
		s.From = max(s.From, except.spans[i].To)
	}
	r.Add(s)
}

// Has reports whether all bytes of s are in the set.
func (r *Ranges) Has(s Span) bool {
	i := r.search(s.From + 1)
	return i < len(r.spans) && r.spans[i].From <= s.From && s.To <= r.spans[i].To
}

// Cut takes up to n bytes off the low end and returns them; Len is not 0.
func (r *Ranges) Cut(n uint64) Span {
	s := r.spans[0]
	if s.To-s.From <= n {
		r.spans = slices.Delete(r.spans, 0, 1)
		return s
	}
	s.To = s.From + n
	r.spans[0].From = s.To
	return s
}

// Advance returns the end of the span that covers at, and drops all spans up
// to there; at if none does.
func (r *Ranges) Advance(at uint64) uint64 {
	k := 0
	for k < len(r.spans) && r.spans[k].From <= at {
		at = max(at, r.spans[k].To)
		k++
	}
	if k > 0 {
		r.spans = slices.Delete(r.spans, 0, k)
	}
	return at
}

// Clear empties the set.
func (r *Ranges) Clear() { r.spans = r.spans[:0] }
