//go:build !(amd64 || arm64) || race

package direct

// trampoline is 0: the race detector follows goroutines, and other processors have no code for it.
func trampoline() uintptr { return 0 }
