package ptp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// sysOffsetAnswer is struct ptp_sys_offset of linux/ptp_clock.h.
type sysOffsetAnswer struct {
	Samples uint32
	_       [3]uint32
	Ts      [51]unix.PtpClockTime
}

// sysOffsetSize is the size that the ioctl's number holds.
const sysOffsetSize = unix.PTP_SYS_OFFSET >> 16 & 0x3fff

var (
	_ [sysOffsetSize - unsafe.Sizeof(sysOffsetAnswer{})]byte
	_ [unsafe.Sizeof(sysOffsetAnswer{}) - sysOffsetSize]byte
)

// sysOffset is PTP_SYS_OFFSET, which old drivers have only.
func sysOffset(fd, samples int) (*sysOffsetAnswer, error) {
	a := &sysOffsetAnswer{Samples: uint32(samples)}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.PTP_SYS_OFFSET, uintptr(unsafe.Pointer(a)))
	if errno != 0 {
		return nil, errno
	}
	return a, nil
}
