package memwatch

import (
	"bytes"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/regcache"
)

// program is the pages of the program's data, from Start to where its heap follows; no bytes at the end of the address
// space if that is not known.
var program = sync.OnceValue(func() regcache.Range {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return unknown
	}
	r := dataOf(b)
	r.Start &^= uint64(unix.Getpagesize()) - 1
	return r
})

var unknown = regcache.Range{Start: ^uint64(0), End: ^uint64(0)}

// Fields of /proc/self/stat behind the name of the program, in parentheses (proc_pid_stat(5)).
const (
	fieldStartData = 45 - 3
	fieldStartBrk  = 47 - 3
)

// dataOf reads where the data is from /proc/self/stat, unknown if it does not say that the heap follows.
func dataOf(stat []byte) regcache.Range {
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) <= fieldStartBrk {
		return unknown
	}
	data, errData := strconv.ParseUint(string(f[fieldStartData]), 10, 64)
	heap, errHeap := strconv.ParseUint(string(f[fieldStartBrk]), 10, 64)
	if errData != nil || errHeap != nil || data == 0 || data > heap {
		return unknown
	}
	return regcache.Range{Start: data, End: heap}
}

// Stays reports whether pages are of the program's own data or of its heap. The kernel gives these addresses to no
// other mapping, and the heap is made shorter and longer by one thread at a time (brk(2), under a lock of malloc's).
func (Watch) Stays(start, end uint64) bool {
	if start < program().Start {
		return false
	}
	brk, _, _ := unix.RawSyscall(unix.SYS_BRK, 0, 0, 0)
	return end <= uint64(brk)
}

// Fixed reports whether pages are of the program's own data, some of which are of its file and cannot be watched: they
// are unmapped by nothing but the end of the process.
func (Watch) Fixed(start, end uint64) bool {
	return start >= program().Start && end <= program().End
}
