package main

import (
	"runtime"
	"testing"
)

func TestPlaces(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var c placeCount
	c.enter(&c.callers, 100)
	if n := runtime.GOMAXPROCS(0); n != 4 {
		t.Errorf("%d places, though the user has said how many", n)
	}
	c = placeCount{}
	c.start()
	steps := []struct{ callers, own, want int }{
		{0, 0, 4}, {1, 0, 4}, {2, 0, 8}, {5, 0, 8}, {6, 0, 12}, {1, 0, 12}, // they stay
		{6, 3, 12}, {6, 4, 16}, {0, 1, 16}, {12, 0, 20}, {100_000, 0, placesLimit()}, {100_001, 9, placesLimit()},
	}
	for _, s := range steps {
		c.enter(&c.callers, s.callers)
		c.enter(&c.own, s.own)
		if n := runtime.GOMAXPROCS(0); n != s.want || c.have != s.want {
			t.Errorf("%d threads and %d of weft's: %d places, counted %d, want %d", s.callers, s.own, n, c.have, s.want)
		}
	}
}
