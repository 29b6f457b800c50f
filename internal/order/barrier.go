package order

import (
	"sync"

	"golang.org/x/sys/unix"
)

// Commands of membarrier(2).
const (
	privateExpedited = 1 << 3 // MEMBARRIER_CMD_PRIVATE_EXPEDITED
	registerPrivate  = 1 << 4 // MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
)

var register = sync.OnceValue(func() bool { return membarrier(registerPrivate) })

// Barriers reports whether the kernel has what Barrier needs.
func Barriers() bool { return register() }

// Barrier has every thread of this process pass a full fence, so that the
// others need none: microseconds, for control operations. A kernel that refuses
// leaves the time that a store takes to leave a processor.
func Barrier() {
	register()
	Fence()
	membarrier(privateExpedited)
}

// membarrier reports whether the kernel has done it.
func membarrier(command uintptr) bool {
	_, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, command, 0, 0)
	return errno == 0
}
