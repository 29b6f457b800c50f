//go:build amd64 && !race

package mem

import (
	"golang.org/x/sys/cpu"

	"github.com/weft-fabric/weft/internal/direct"
)

// HasWays reports whether there is [CopyBy]. Immutable.
var HasWays = cpu.X86.HasAVX

// entry is the address of the copy's code, which is not called by its name: after such a call Go reads the goroutine
// from the thread's storage, which a thread of C has none in. Immutable.
var entry = copyEntry()

// copyEntry returns the address of the code in by_amd64.s.
func copyEntry() uintptr

// CopyBy copies n bytes from one address to another, which do not overlap, and returns the ticks that it took, with
// [Timed] in how, of a clock whose rate does not change. [Strings] in how is [Stream]; with [PastCaches] the address to
// copy to is a multiple of 16. Stores that follow are visible after the copy.
//
//go:noinline
func CopyBy(to, from, n, how uintptr) (ticks uintptr) { return direct.Call(&entry, to, from, n, how) }
