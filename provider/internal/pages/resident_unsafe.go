package pages

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// resident reports of each page from an address on whether it is there (mincore(2)): bit 0 of its byte.
// The error is ENOMEM if a part is not mapped.
func resident(at uint64, pages []byte) error {
	n := uintptr(len(pages)) * uintptr(os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(at), n, uintptr(unsafe.Pointer(unsafe.SliceData(pages))))
	if errno != 0 {
		return errno
	}
	return nil
}
