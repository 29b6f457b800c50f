package main

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

// A thread that called into Go keeps a place among those for threads that run
// Go for a while after it has returned, also when it polls in C or is not running.
// Were there no more places than processors, weft's own goroutines and other threads of the
// application would wait until the runtime's monitor takes one away, which it
// does late (signals.c). So there are as many as threads that have called, and some more.

// sparePlaces is for weft's own goroutines, those included that wait in the kernel.
const sparePlaces = 3

// placesFor is how many places there are for a number of threads, in steps: each stops all
// threads that run Go for a moment.
func placesFor(threads int) int { return (threads + sparePlaces + 3) &^ 3 }

// placeCount counts the places. The lock is taken by a thread's first call at most.
type placeCount struct {
	// have is how many there are, 0: the user has said how many. Written under mu, read by each
	// thread at its first call; sequentially consistent.
	have atomic.Int64
	mu   sync.Mutex
}

var places placeCount

func init() {
	if os.Getenv("GOMAXPROCS") == "" {
		places.have.Store(int64(runtime.GOMAXPROCS(0)))
		places.enter(1)
	}
}

// enter makes places for so many threads. They stay.
func (c *placeCount) enter(threads int) {
	if have := c.have.Load(); have == 0 || threads+sparePlaces <= int(have) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if want := placesFor(threads); want > int(c.have.Load()) {
		runtime.GOMAXPROCS(want)
		c.have.Store(int64(want))
	}
}
