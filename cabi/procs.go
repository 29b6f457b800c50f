package main

import (
	"os"
	"runtime"
)

// leastProcs is the least number of threads that may run Go at once.
const leastProcs = 4

// A thread that called into Go keeps a place among these for a while after it
// has returned, also when it polls in C or is not running. A process that is
// bound to one processor, as ranks of MPI are, would have one place, and weft's
// own goroutines and other threads of the application would wait until the
// runtime's monitor takes it away.
func init() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < leastProcs {
		runtime.GOMAXPROCS(leastProcs)
	}
}
