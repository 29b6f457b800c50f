// Package pages puts memory that is used often on huge pages, and counts how often memory is used.
//
// The kernel pins the pages of the other process, one after the other, when a process reads or writes them; the pages
// of the own process cost less, but something. On a huge page that is one step for all, a third of the time of a copy
// of 64 KiB.
//
// Huge pages are asked for by MADV_COLLAPSE (Linux 6.1), which copies 2 MiB to a huge page and changes nothing else: an
// access meanwhile waits. What the kernel cannot move stays where it is.
package pages

import (
	"errors"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Size is the size of a huge page in bytes, where there is but one.
const Size = 2 << 20

// Move asks the kernel to put memory of this process on huge pages, and
// returns for how many bytes it did so. Only whole huge pages within the memory are
// asked for, and only those that are there for the most part.
func Move(addr, n uint64) (done uint64) {
	for at := (addr + Size - 1) &^ (Size - 1); at+Size <= addr+n; at += Size {
		if collapse(at) == nil {
			done += Size
		}
	}
	return done
}

// collapse puts the memory at an address, a multiple of Size, on a huge page. Errors:
// EAGAIN and EBUSY while one of its pages is in use, ENOMEM, EINVAL for
// memory that cannot be on one, and errSparse. The address is no pointer: it may be of unused memory of Go's.
func collapse(at uint64) error {
	missing, err := absent(at)
	if err != nil {
		return err
	}
	if missing <= Size-leastDense {
		return advise(at)
	}
	if !grown.take(at, missing) {
		return errSparse
	}
	err = advise(at)
	if err != nil {
		grown.giveBack(at)
	}
	return err
}

func advise(at uint64) error {
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(at), Size, unix.MADV_COLLAPSE); errno != 0 {
		return errno
	}
	return nil
}

// errSparse: most of the memory that a huge page would have is not there.
var errSparse = errors.New("too little of it is in use")

// leastDense is how much of a huge page's memory is there already, in bytes, where the rest, which the kernel fills
// with zeros, does not count as grown: the process grows by a third at most.
const leastDense = Size / 4 * 3

// absent is how many bytes of the memory for a huge page at an address are not there. Error: ENOMEM if a part is not
// mapped at all.
func absent(at uint64) (int, error) {
	var pages [Size / 4096]byte
	vec := pages[:Size/os.Getpagesize()]
	if err := resident(at, vec); err != nil {
		return 0, err
	}
	there := 0
	for _, v := range vec {
		there += int(v & 1)
	}
	return Size - there*os.Getpagesize(), nil
}

// Allowed reports whether the administrator lets memory be on huge pages of this size.
var Allowed = sync.OnceValue(func() bool {
	const dir = "/sys/kernel/mm/transparent_hugepage/"
	enabled, err := os.ReadFile(dir + "enabled")
	size, err2 := os.ReadFile(dir + "hpage_pmd_size")
	if err != nil || err2 != nil {
		return false
	}
	return !strings.Contains(string(enabled), "[never]") && strings.TrimSpace(string(size)) == "2097152"
})
