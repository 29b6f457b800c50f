package main

// #include "thread.h"
import "C"

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/proxy"
)

// A thread that called into Go keeps a place among those for threads that run
// Go for a while after it has returned, also when it polls in C or is not running.
// Were there no more places than processors, weft's own goroutines and other threads of the
// application would wait until the runtime's monitor takes one away, which it
// does late (signals.c). So there are as many as threads that have called, and some more.

// sparePlaces is for weft's own goroutines, those included that wait in the kernel.
const sparePlaces = 3

// placesLimit is how many places there are at most: a quarter of them mark memory when the collector
// runs. Threads beyond it may wait for the monitor.
func placesLimit() int { return max(64, 4*runtime.NumCPU()) }

// placesFor is how many places there are for a number of threads, in steps: each stops all
// threads that run Go for a moment.
func placesFor(threads int) int { return min((threads+sparePlaces+3)&^3, placesLimit()) }

// placeCount counts the places. The lock is taken when there are more threads than ever before.
type placeCount struct {
	// callers is the most threads of the application that have called, own the most of package
	// proxy that have run, at a time. Written under mu, read by each thread when it begins; sequentially consistent.
	callers, own atomic.Int64
	mu           sync.Mutex
	have         int // places, 0: the user has said how many; under mu, but for start
}

var places placeCount

func init() {
	if os.Getenv("GOMAXPROCS") == "" {
		places.start()
		proxy.OnThread = func(running int) { places.enter(&places.own, running) }
	}
}

// start makes the first places. That they are set ends the runtime's own changes of their number, which
// follow the processors and the control group's limit.
func (c *placeCount) start() {
	c.have = max(runtime.GOMAXPROCS(0), placesFor(1))
	c.threads(c.have)
	runtime.GOMAXPROCS(c.have)
}

// enter makes places for as many threads of a kind, which stay.
func (c *placeCount) enter(kind *atomic.Int64, threads int) {
	if int64(threads) <= kind.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	kind.Store(max(kind.Load(), int64(threads)))
	want := max(c.have, placesFor(int(c.callers.Load()+c.own.Load())))
	if c.threads(want) && c.have != 0 && want > c.have {
		runtime.GOMAXPROCS(want)
		c.have = want
	}
}

// spareThreads is for what the runtime does beside: its monitor, and threads that wait in the kernel.
const spareThreads = 4

// threads reports whether there are as many threads as the runtime may need for a number of places: one
// for each, those that have none because they sleep, and those of package proxy.
func (c *placeCount) threads(places int) bool {
	return bool(C.weft_spares_want(C.uint(places+spareThreads), C.uint(c.own.Load())))
}
