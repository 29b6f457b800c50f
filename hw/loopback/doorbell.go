package loopback

import (
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hot"
)

// The doorbell is a datagram socket whose name stands beside the segment.
//
// The sleeper:  armed = 1; look at the ring; sleep; armed = 0; empty the socket
// The sender:   publish; look at armed; send a byte
//
// All four memory accesses are sequentially consistent, so either the sleeper
// sees the message or the sender sees it armed. The sender does not write
// armed: several senders may ring, and a full socket is one that rings already.

// doorbell is the own interface's. fd is -1 or immutable.
type doorbell struct{ fd int }

func (d *doorbell) close() {
	if d.fd >= 0 {
		unix.Close(d.fd)
	}
}

// EnableWait makes the doorbell, if there is none.
func (i *Iface) EnableWait() error {
	if !i.usable() {
		return errClosed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bell.fd >= 0 {
		return nil
	}
	fd, err := bindBell(i.seg.path + bellSuffix)
	if err != nil {
		return fmt.Errorf("loopback: doorbell %s%s: %w", i.seg.path, bellSuffix, err)
	}
	i.bell.fd = fd
	atomic.OrUint32(i.seg.rxState(), hot.RxWaitable)
	return nil
}

func bindBell(path string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = unix.Fchmod(fd, 0o600) // the mode that bind gives the file
	if err == nil {
		unix.Unlink(path) // nobody else uses the name while our segment has its own
		err = withBellAddr(path, func(a *unix.SockaddrUnix) error { return unix.Bind(fd, a) })
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// withBellAddr calls f with the address of the socket at path. Socket addresses
// hold 107 bytes; a longer path is reached through its open directory.
func withBellAddr(path string, f func(*unix.SockaddrUnix) error) error {
	if len(path) <= 107 {
		return f(&unix.SockaddrUnix{Name: path})
	}
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return f(&unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(dir) + "/" + filepath.Base(path)})
}

// DoorbellFD is the doorbell's file descriptor, -1 before EnableWait.
func (i *Iface) DoorbellFD() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.bell.fd
}

// Arm asks senders to ring.
func (i *Iface) Arm() {
	if i.usable() {
		atomic.StoreUint32(i.seg.armed(), 1)
	}
}

// Disarm takes it back and empties the doorbell. A byte that comes after it,
// from a sender that saw armed before, makes one later sleep short.
func (i *Iface) Disarm() {
	if !i.usable() {
		return
	}
	atomic.StoreUint32(i.seg.armed(), 0)
	var b [8]byte
	for range 1 << 12 { // bounded: a peer may go on ringing
		if _, err := unix.Read(i.bell.fd, b[:]); err != nil && err != unix.EINTR {
			return
		}
	}
}

// Pending tells whether Progress would find something. Any thread may ask.
func (i *Iface) Pending() bool {
	return i.usable() && i.rx.ring.Ready(atomic.LoadUint64(i.rx.headWord))
}

// Wake rings the peer's doorbell if it sleeps.
func (e *Endpoint) Wake() {
	if !e.dead.Load() && e.iface.usable() && atomic.LoadUint32(e.armed) != 0 {
		e.iface.ringer.ring(e.seg.path + bellSuffix)
	}
}

// ringer is the socket from which an interface rings others, made when first
// needed. fd is -1, or stays until close.
type ringer struct{ fd atomic.Int32 }

func (r *ringer) ring(path string) {
	fd := int(r.fd.Load())
	if fd < 0 {
		var err error
		fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return // the sleeper looks again after its timeout
		}
		if !r.fd.CompareAndSwap(-1, int32(fd)) {
			unix.Close(fd)
			fd = int(r.fd.Load())
		}
	}
	_ = withBellAddr(path, func(a *unix.SockaddrUnix) error { // full: it rings already; gone: nobody sleeps
		return unix.Sendto(fd, []byte{1}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, a)
	})
}

func (r *ringer) close() {
	if fd := r.fd.Swap(-1); fd >= 0 {
		unix.Close(int(fd))
	}
}
