package loopback

import (
	"os"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/internal/mem"

	"golang.org/x/sys/unix"
)

// Sizes that EagerLimit tries: a message takes a bounce buffer, so the number of sizes is that of buffer sizes.
const (
	eagerLeast = 16 << 10
	eagerTries = 8 // of each size, of which the fastest counts: other programs only make one slower
)

// EagerLimit measures how long messages between processes of this host may be, of at most most bytes, that arrive
// sooner with their payload, which is copied into a bounce buffer and out of it, than by one copy of the kernel's,
// which finds and pins each page. It tries most, its half, and so on down to 16 KiB; 0: the kernel is always faster.
// Where the kernel copies nothing the answer is most. It takes some 100 us.
//
// What it cannot know is how far apart the processors of a pair of peers are. Both ways take longer then, and the order
// stays (outbound.Fill, docs/benchmarks.md).
func EagerLimit(most int) int {
	memory, err := mem.Map(3*most, 0)
	if err != nil {
		return most
	}
	defer func() { _ = mem.Unmap(memory) }() // what cannot be unmapped stays
	from, bounce, to := memory[:most], memory[most:2*most], memory[2*most:]
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1 // has a page of its own
	}
	pid := uint32(os.Getpid())
	return eagerLimit(most, func(n int) {
		copy(bounce[:n], from)
		copy(to[:n], bounce)
	}, func(n int) bool {
		l := []iovec{{uintptr(unsafe.Pointer(&to[0])), uintptr(n)}}
		r := []iovec{{uintptr(unsafe.Pointer(&from[0])), uintptr(n)}}
		done, errno := vmTransfer(unix.SYS_PROCESS_VM_READV, pid, l, r, true)
		return errno == 0 && done == uintptr(n)
	})
}

// eagerLimit is EagerLimit with two copies of n bytes and the kernel's, which reports whether it has copied.
func eagerLimit(most int, copies func(n int), kernel func(n int) bool) int {
	for n := most; n >= eagerLeast; n /= 2 {
		twice, once := time.Duration(1<<62), time.Duration(1<<62)
		for range eagerTries {
			start := time.Now()
			copies(n)
			middle := time.Now()
			if !kernel(n) {
				return most
			}
			twice, once = min(twice, middle.Sub(start)), min(once, time.Since(middle))
		}
		if twice <= once {
			return n
		}
	}
	return 0
}
