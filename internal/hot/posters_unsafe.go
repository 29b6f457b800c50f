package hot

import "unsafe"

// Posters is how many threads can post at once without the runtime.
const Posters = 4096

// posters are the lines of all threads that post, with room to begin at a cache line.
var posters [(Posters + 1) * unsafe.Sizeof(Poster{})]byte

// PosterAt is a line, by its number from 0 to Posters - 1.
func PosterAt(i int) *Poster {
	const line = unsafe.Sizeof(Poster{})
	begin := (line - uintptr(unsafe.Pointer(&posters))%line) % line
	return (*Poster)(unsafe.Pointer(&posters[begin+uintptr(i)*line]))
}
