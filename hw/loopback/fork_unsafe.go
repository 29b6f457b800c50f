package loopback

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forkMark points to a word that is 1 in this process and that the kernel
// zeroes in a child after fork, which has the parent's mappings but must not
// touch them. Written once by Open, then read by any thread with one load.
var forkMark = sync.OnceValue(func() *uint32 {
	p, err := unix.MmapPtr(-1, 0, nil, pageBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return new(uint32(1)) // no protection, as on kernels before 4.14
	}
	mark := (*uint32)(p)
	_ = unix.Madvise(unsafe.Slice((*byte)(p), pageBytes), unix.MADV_WIPEONFORK)
	atomic.StoreUint32(mark, 1)
	return mark
})
