package list

import "sync/atomic"

// Tally is what lists have moved to and from one peer, by the ways that elements took. The zero value is ready. Any
// thread may call its methods.
type Tally struct {
	// all is nil as long as nothing is counted. Stored once, by the first to count; read by any thread; sequentially
	// consistent.
	all atomic.Pointer[[Ways]tally]
}

// tally is what has taken a way. Added to by any thread, read by the holder of the progress lease; sequentially
// consistent, and no two of the numbers belong together.
type tally struct{ elements, bytes atomic.Uint64 }

// Count counts elements that took a way, and their bytes.
func (t *Tally) Count(w Way, elements, bytes uint64) {
	all := t.all.Load()
	if all == nil {
		t.all.CompareAndSwap(nil, new([Ways]tally))
		all = t.all.Load()
	}
	all[w].elements.Add(elements)
	all[w].bytes.Add(bytes)
}

// Moved is what has taken one way.
type Moved struct{ Elements, Bytes uint64 }

// Moved returns what is counted. False: nothing is.
func (t *Tally) Moved() (all [Ways]Moved, ok bool) {
	counts := t.all.Load()
	if counts == nil {
		return all, false
	}
	for w := range counts {
		all[w] = Moved{counts[w].elements.Load(), counts[w].bytes.Load()}
	}
	return all, true
}
