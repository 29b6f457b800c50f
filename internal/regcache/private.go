package regcache

import (
	"encoding/binary"
	"sync"

	"golang.org/x/sys/unix"
)

// Bits of an entry of pagemap (Documentation/admin-guide/mm/pagemap.rst).
const (
	pagePresent = 1 << 63
	pageShared  = 1 << 61 // of a file, or shared
)

// pagemap is what the kernel shows of this process's pages, -1 if nothing.
var pagemap = sync.OnceValue(func() int {
	fd, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
})

// isPrivate reports whether all pages of a range are present and private
// anonymous memory.
func isPrivate(r Range) bool {
	var b [4096]byte
	for at := r.Start / pageSize; at < r.End/pageSize; {
		want := min(8*(r.End/pageSize-at), uint64(len(b)))
		n, err := unix.Pread(pagemap(), b[:want], int64(8*at))
		if err != nil || n < 8 {
			return false
		}
		for k := 0; k+8 <= n; k += 8 {
			if e := binary.NativeEndian.Uint64(b[k:]); e&pagePresent == 0 || e&pageShared != 0 {
				return false
			}
			at++
		}
	}
	return true
}
