package congestion

import "time"

// filter keeps the least value seen within a time window, or the greatest if
// its values are negated. It holds the best three candidates, each younger and
// worse than the one before, so that when the best grows old the next takes
// over (Kathleen Nichols' algorithm, as in Linux' lib/win_minmax.c). The answer
// is at most a quarter of the window off from the exact one.
type filter struct {
	best [3]candidate
	full bool
}

type candidate struct {
	at    Time
	value int64
}

// add takes a value in and returns the least of the window.
func (f *filter) add(now Time, window time.Duration, value int64) int64 {
	c := candidate{now, value}
	if !f.full || value <= f.best[0].value || now.Sub(f.best[2].at) > window {
		f.full = true
		f.best = [3]candidate{c, c, c}
		return value
	}
	if value <= f.best[1].value {
		f.best[1], f.best[2] = c, c
	} else if value <= f.best[2].value {
		f.best[2] = c
	}
	f.age(c, window)
	return f.best[0].value
}

// age drops the best candidate when it left the window, and takes later ones
// in so that the three spread over the window.
func (f *filter) age(c candidate, window time.Duration) {
	old := c.at.Sub(f.best[0].at)
	switch {
	case old > window:
		f.best = [3]candidate{f.best[1], f.best[2], c}
		if c.at.Sub(f.best[0].at) > window {
			f.best = [3]candidate{f.best[1], f.best[2], c}
		}
	case f.best[1].at == f.best[0].at && old > window/4:
		f.best[1], f.best[2] = c, c
	case f.best[2].at == f.best[1].at && old > window/2:
		f.best[2] = c
	}
}

// get returns the least value, 0 before the first.
func (f *filter) get() int64 { return f.best[0].value }
