//go:build !amd64 || race

package mem

// HasTimed reports whether there is [CopyTimed].
const HasTimed = false

// CopyTimed copies nothing.
func CopyTimed(_, _, _, _ uintptr) (ticks uintptr) { return 0 }
