//go:build !amd64

package mem

// Stream copies src to dst, which is at least as long and does not overlap it, for another processor to read. Stores
// that follow are visible after the copy, as after any other.
func Stream(dst, src []byte) int {
	_ = dst[:len(src)]
	return copy(dst, src)
}
