package doctor

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// address is that of b's bytes. The garbage collector moves nothing on the heap.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func keep(b []byte) { runtime.KeepAlive(b) }

func iovec(b []byte) unix.Iovec {
	v := unix.Iovec{Base: unsafe.SliceData(b)}
	v.SetLen(len(b))
	return v
}
