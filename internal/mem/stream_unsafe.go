package mem

import "unsafe"

// StreamMin is the length in bytes from which [Stream] is another copy than the ordinary one.
const StreamMin = 2 << 10

// Memory of these lengths is copied by assignment, for which the compiler makes one string move (REP MOVSQ on amd64):
// it takes lines that it overwrites whole without reading them first from the processor that has them. They are
// structures, because arrays, which may overlap in part, are copied by runtime.memmove, which reads them.
type (
	bytes2k  struct{ words [StreamMin / 8]uint64 }
	bytes4k  struct{ words [StreamMin / 4]uint64 }
	bytes8k  struct{ words [StreamMin / 2]uint64 }
	bytes16k struct{ words [StreamMin]uint64 }
)

// Stream copies src to dst, which is at least as long and does not overlap it, where one of them is memory that
// another processor has in its caches. Stores that follow are visible after the copy, as after any other.
func Stream(dst, src []byte) int {
	n := len(src)
	if _ = dst[:n]; n < StreamMin {
		return copy(dst, src)
	}
	to, from := unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src))
	at := 0
	for ; n-at >= 8*StreamMin; at += 8 * StreamMin {
		*(*bytes16k)(unsafe.Add(to, at)) = *(*bytes16k)(unsafe.Add(from, at))
	}
	if n-at >= 4*StreamMin {
		*(*bytes8k)(unsafe.Add(to, at)) = *(*bytes8k)(unsafe.Add(from, at))
		at += 4 * StreamMin
	}
	if n-at >= 2*StreamMin {
		*(*bytes4k)(unsafe.Add(to, at)) = *(*bytes4k)(unsafe.Add(from, at))
		at += 2 * StreamMin
	}
	if n-at >= StreamMin {
		*(*bytes2k)(unsafe.Add(to, at)) = *(*bytes2k)(unsafe.Add(from, at))
		at += StreamMin
	}
	return at + copy(dst[at:], src[at:])
}
