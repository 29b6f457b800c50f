//go:build amd64

package mem

import "unsafe"

// streamUnit is the unit of streamLines in bytes; streamAlign is what its destination is aligned to.
const (
	streamUnit  = 64
	streamAlign = 16
)

// streamLines copies n bytes, a multiple of streamUnit and not 0, by stores that go past this processor's caches, and
// are visible before every store that follows the call.
//
//go:noescape
func streamLines(dst, src unsafe.Pointer, n uintptr)

// Stream copies src to dst, which is at least as long and does not overlap it, for another processor to read: it is
// not left in this one's caches, from which fetching it takes the other longer than from memory. Stores that follow
// are visible after the copy, as after any other.
func Stream(dst, src []byte) int {
	n := len(src) &^ (streamUnit - 1)
	if _ = dst[:len(src)]; n == 0 || uintptr(unsafe.Pointer(unsafe.SliceData(dst)))%streamAlign != 0 {
		return copy(dst, src)
	}
	streamLines(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)), uintptr(n))
	return n + copy(dst[n:], src[n:])
}
