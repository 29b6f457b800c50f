package cq

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// pollFD waits until fd is readable or ms milliseconds have passed (negative:
// for ever); it may return early.
func pollFD(fd, ms int) {
	p := unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	_, _ = unix.Poll(unsafe.Slice(&p, 1), ms) // EINTR is early, nothing else can fail
}
