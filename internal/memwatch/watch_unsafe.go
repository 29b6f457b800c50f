package memwatch

// #cgo CFLAGS: -O2 -std=gnu11 -Wall -Wextra -D_GNU_SOURCE
// #cgo LDFLAGS: -lpthread
// #include "watch.h"
import "C"

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/regcache"
)

// Watch is the process's watch. Its methods may be called from any thread.
type Watch struct{}

// Start starts the watch unless it runs. Errors: those of userfaultfd(2), EPERM
// and ENOSYS among them.
func Start() (Watch, error) {
	var step *C.char
	if rc := C.weft_memwatch_start(&step); rc != 0 {
		return Watch{}, fmt.Errorf("memwatch: %s: %w", C.GoString(step), unix.Errno(rc))
	}
	return Watch{}, nil
}

// Cover begins to watch the whole pages from start to end. Errors: EINVAL for
// what is not mapped or cannot be watched, EBUSY for what another descriptor watches.
func (Watch) Cover(start, end uint64) error {
	if rc := C.weft_memwatch_cover(C.uint64_t(start), C.uint64_t(end)); rc != 0 {
		return fmt.Errorf("memwatch: cover %#x to %#x: %w", start, end, unix.Errno(rc))
	}
	return nil
}

// Uncover stops watching whole pages.
func (Watch) Uncover(start, end uint64) {
	C.weft_memwatch_uncover(C.uint64_t(start), C.uint64_t(end))
}

// Quiet reports that there was no change since seen, of those that had come to their end when it was called: their
// threads wait in the kernel until a read of them has begun. It makes no system call.
func (w Watch) Quiet(seen uint64) bool {
	c := w.Counts()
	return c.Quiet(seen)
}

// Counts are what Quiet reads.
func (Watch) Counts() regcache.Counts {
	c := &C.weft_memwatch_counts
	return regcache.Counts{Begun: (*uint64)(unsafe.Pointer(&c.begun)), Ended: (*uint64)(unsafe.Pointer(&c.ended)),
		Published: (*uint64)(unsafe.Pointer(&c.published))}
}

// Changes appends the ranges that have changed since *seen, which it advances.
// Every change is among them that had taken place when it was called. False: too
// many, everything may have changed.
func (Watch) Changes(seen *uint64, to []regcache.Range) ([]regcache.Range, bool) {
	var b [32]C.struct_weft_memwatch_range
	for {
		n := C.weft_memwatch_changes((*C.uint64_t)(unsafe.Pointer(seen)), &b[0], C.int(len(b)))
		if n < 0 {
			return to, false
		}
		for _, r := range b[:n] {
			to = append(to, regcache.Range{Start: uint64(r.start), End: uint64(r.end)})
		}
		if int(n) < len(b) {
			return to, true
		}
	}
}
