package memwatch

import (
	"bytes"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// dataStart is where the program's data begins, behind which its heap follows, ^0 if that is not known.
var dataStart = sync.OnceValue(func() uint64 {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return ^uint64(0)
	}
	return startOf(b)
})

// Fields of /proc/self/stat behind the name of the program, in parentheses (proc_pid_stat(5)).
const (
	fieldStartData = 45 - 3
	fieldStartBrk  = 47 - 3
)

// startOf reads where the data begins from /proc/self/stat, ^0 if it does not say that the heap follows.
func startOf(stat []byte) uint64 {
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) <= fieldStartBrk {
		return ^uint64(0)
	}
	data, errData := strconv.ParseUint(string(f[fieldStartData]), 10, 64)
	heap, errHeap := strconv.ParseUint(string(f[fieldStartBrk]), 10, 64)
	if errData != nil || errHeap != nil || data == 0 || data > heap {
		return ^uint64(0)
	}
	return data
}

// Stays reports whether pages are of the program's own data or of its heap. The kernel gives these addresses to no
// other mapping, and the heap is made shorter and longer by one thread at a time (brk(2), under a lock of malloc's).
func (Watch) Stays(start, end uint64) bool {
	from := dataStart()
	if start < from {
		return false
	}
	brk, _, _ := unix.RawSyscall(unix.SYS_BRK, 0, 0, 0)
	return end <= uint64(brk)
}
