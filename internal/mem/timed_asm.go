//go:build amd64 && !race

package mem

import "github.com/weft-fabric/weft/internal/direct"

// HasTimed reports whether there is [CopyTimed].
const HasTimed = true

// timed is the address of the copy's code, which is not called by its name: after such a call Go reads the goroutine
// from the thread's storage, which a thread of C has none in. Immutable.
var timed = timedEntry()

// timedEntry returns the address of the code in timed_amd64.s.
func timedEntry() uintptr

// CopyTimed copies n bytes from one address to another, which do not overlap, and returns the ticks that it took of a
// clock whose rate does not change. With past = 1 it copies past the caches: the bytes go to memory, their lines leave
// the caches of all processors, and another that reads them has them from memory rather than from the cache of the one
// that wrote them; to is a multiple of 16 then. With past = 0 it is [Stream]. Stores that follow are visible after the
// copy.
//
//go:noinline
func CopyTimed(to, from, n, past uintptr) (ticks uintptr) {
	return direct.Call(&timed, to, from, n, past)
}
