package xdp

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System calls of AF_XDP sockets that take pointers.

// option sets a socket option of level SOL_XDP that has a structure for its value. Errors are errno values.
func option[T any](fd, name int, value *T) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(name),
		uintptr(unsafe.Pointer(value)), unsafe.Sizeof(*value), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// readOption reads such an option. EOPNOTSUPP: the kernel's structure has another size.
func readOption[T any](fd, name int, value *T) error {
	n := uint32(unsafe.Sizeof(*value))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(name),
		uintptr(unsafe.Pointer(value)), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return errno
	}
	if n != uint32(unsafe.Sizeof(*value)) {
		return fmt.Errorf("an answer of %d bytes: %w", n, unix.EOPNOTSUPP) // a kernel before 5.4
	}
	return nil
}

// register makes b, off the Go heap, the memory of the socket's frames (UMEM), in chunks of so many bytes.
func register(fd int, b []byte, chunk int) error {
	r := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&b[0]))), Len: uint64(len(b)), Size: uint32(chunk)}
	if err := option(fd, unix.XDP_UMEM_REG, &r); err != nil {
		return fmt.Errorf("register %d bytes for frames: %w", len(b), err)
	}
	return nil
}

// notifyTx has the kernel send what is in the transmit ring of fd. It returns the
// error of the kernel.
func notifyTx(fd int) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

// notifyFill has the kernel take frames from the fill ring of fd.
func notifyFill(fd int) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
}
