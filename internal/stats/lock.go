package stats

import "golang.org/x/sys/unix"

// A process holds a lock on its page while it lives, which shows processes of other
// pid namespaces that it does. It belongs to the open file (F_OFD_SETLK): other copies of
// weft in the process may open and close the page, and children after fork keep it.

func setLock(fd int) error {
	l := unix.Flock_t{Type: unix.F_WRLCK}
	return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &l)
}

// unlocked reports whether no process has the lock of a page that has one.
func unlocked(b image, fd int) bool {
	l := unix.Flock_t{Type: unix.F_WRLCK}
	return b.u32(offLocked) == 1 && unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l) == nil && l.Type == unix.F_UNLCK
}
