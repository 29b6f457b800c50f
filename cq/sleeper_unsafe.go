package cq

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// pollFD waits until fd is readable or ms milliseconds have passed (negative:
// for ever); it may return early. It reports whether a signal was the reason.
func pollFD(fd, ms int) (signaled bool) {
	p := unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	_, err := unix.Poll(unsafe.Slice(&p, 1), ms)
	return err == unix.EINTR // nothing else can fail
}
