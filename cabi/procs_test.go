package main

import (
	"runtime"
	"testing"
)

func TestPlaces(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var c placeCount
	c.enter(100)
	if n := runtime.GOMAXPROCS(0); n != 4 {
		t.Errorf("%d places, though the user has said how many", n)
	}
	c.have.Store(4)
	for threads, want := range []int{4, 4, 8, 8, 8, 8, 12} {
		if c.enter(threads); runtime.GOMAXPROCS(0) != want || int(c.have.Load()) != want {
			t.Errorf("%d threads: %d places, want %d", threads, runtime.GOMAXPROCS(0), want)
		}
	}
	c.enter(1)
	if n := runtime.GOMAXPROCS(0); n != 12 {
		t.Errorf("%d places are left, want 12", n)
	}
}
