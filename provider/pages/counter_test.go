package pages

import (
	"slices"
	"testing"
)

// TestCounter: a place's owner is reported after so many bytes, and again after eight times as many;
// copies that cross a border count for both sides of it, short ones for none.
func TestCounter(t *testing.T) {
	const n = 64 << 10
	const least = 32 << 10
	c := &Counter{}
	c.Init(4*n, least)
	asks := func(times int, at, extra uint64) (reported []int) {
		for i := range times {
			if got, often := c.Copied(1, 2, at, n, extra); often {
				reported = append(reported, i)
				if got < at || got >= at+n {
					t.Errorf("address %#x of a copy at %#x", got, at)
				}
			}
		}
		return reported
	}
	if got := asks(100, 0, 0); !slices.Equal(got, []int{3, 35}) {
		t.Errorf("reported at copies %d", got)
	}
	if got := asks(10, Size-n/2, 0); !slices.Equal(got, []int{7}) { // half of each is in the place that is counted already
		t.Errorf("reported at copies across a border %d", got)
	}
	if got := asks(2, 4*Size, 2*n); !slices.Equal(got, []int{1}) {
		t.Errorf("reported at copies that stand for others %d", got)
	}
	for range 1000 {
		if _, often := c.Copied(1, 2, 8*Size, least-1, 0); often {
			t.Fatal("short copies count")
		}
	}
	for i := range uint64(3 * places) {
		c.Copied(1, 3, i*Size, n, 0)
	}
	if len(c.places) > places {
		t.Errorf("%d places are counted", len(c.places))
	}
	c = &Counter{}
	if got := asks(1000, 0, 1<<40); got != nil || c.Sample() != 1<<64-1 {
		t.Errorf("reported at copies %d, though nothing is to be", got)
	}
}
