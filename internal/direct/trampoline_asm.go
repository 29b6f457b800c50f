//go:build (amd64 || arm64) && !race

package direct

// trampoline returns the address of the code in trampoline_*.s.
func trampoline() uintptr
