//go:build race

package race

import (
	"runtime"
	"unsafe"
)

// Enabled reports whether the race detector is built in.
const Enabled = true

// witnesses are Go's, and stand for words that are not: one for several words, so that it sees at most more order than
// there is.
var witnesses [1 << 16]byte

func witness(word *uint32) unsafe.Pointer {
	return unsafe.Pointer(&witnesses[uintptr(unsafe.Pointer(word))/unsafe.Sizeof(*word)%uintptr(len(witnesses))])
}

// Acquire shows the race detector that the caller has taken the lease at a word.
func Acquire(word *uint32) { runtime.RaceAcquire(witness(word)) }

// Release shows the race detector that the caller is about to give the lease at a word.
func Release(word *uint32) { runtime.RaceReleaseMerge(witness(word)) }
