package loopback

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/hot"
)

// The doorbell is a datagram socket whose name stands beside the segment.
//
//	the sleeper   armed = 1; poll the ring; sleep; armed = 0; empty the socket
//	the sender    publish; read armed; send a byte
//
// All four memory accesses are sequentially consistent, so either the sleeper
// sees the message or the sender sees it armed. Whether there is a sleeper at
// all (RxWaitable) the sender asks between, without a fence: see barrier. The
// sender does not write armed: several senders may ring, and a full socket is
// one that rings already.

const (
	// maxSocketPath is what a socket address holds, without the final 0.
	maxSocketPath = 107
	// maxFileName is a doorbell's longest: "weft.", two numbers of 10 digits
	// with dots, an IPv6 address with scope and port (58), a number with a dot, ".bell".
	maxFileName = 5 + 11 + 11 + 58 + 6 + 5
)

// bellDir is the directory of the doorbells, opened if their paths are too
// long for a socket address; they are reached through the descriptor then.
type bellDir struct{ fd int } // -1: not needed

func openBellDir(dir string) (bellDir, error) {
	if len(dir)+1+maxFileName <= maxSocketPath {
		return bellDir{-1}, nil
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return bellDir{fd}, err
}

// path is where the bell of the segment at path is found.
func (d bellDir) path(segment string) string {
	if path := segment + bellSuffix; len(path) <= maxSocketPath || d.fd < 0 {
		return path
	}
	return "/proc/self/fd/" + strconv.Itoa(d.fd) + "/" + filepath.Base(segment) + bellSuffix
}

// bellAddr is a struct sockaddr_un ready for sendto. Immutable.
type bellAddr struct {
	raw [2 + maxSocketPath + 1]byte
	n   uintptr // 0: the path does not fit
}

func (d bellDir) address(segment string) (a bellAddr) {
	if path := d.path(segment); len(path) <= maxSocketPath {
		binary.NativeEndian.PutUint16(a.raw[:], unix.AF_UNIX)
		a.n = uintptr(2 + copy(a.raw[2:], path) + 1)
	}
	return a
}

func bellSocket() (int, error) {
	return unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
}

// EnableWait makes the doorbell, if there is none.
func (i *Iface) EnableWait() error {
	if !i.usable() {
		return errClosed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bellFD >= 0 {
		return nil
	}
	fd, err := bindBell(i.bellDir.path(i.seg.path))
	if err != nil {
		return fmt.Errorf("loopback: doorbell %s%s: %w", i.seg.path, bellSuffix, err)
	}
	i.bellFD = fd
	atomic.OrUint32(i.seg.rxState(), hot.RxWaitable)
	barrier()
	return nil
}

// Commands of membarrier(2).
const (
	barrierGlobal   = 1 << 1 // MEMBARRIER_CMD_GLOBAL_EXPEDITED
	barrierRegister = 1 << 2 // MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED
)

// registerBarrier lets barriers of other processes reach this one's threads.
var registerBarrier = sync.OnceFunc(func() { membarrier(barrierRegister) })

// barrier has every thread that runs in a process with an interface pass a
// memory barrier. A sender publishes its message and then reads RxWaitable,
// without a fence. After the barrier it has either seen the bit, and reads
// armed behind a fence, or its message can be seen. A kernel that refuses
// leaves the time that a store takes to leave a processor, against several
// system calls until the first sleep.
func barrier() { membarrier(barrierGlobal) }

func membarrier(command uintptr) { _, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, command, 0, 0) }

func bindBell(path string) (int, error) {
	fd, err := bellSocket()
	if err != nil {
		return -1, err
	}
	err = unix.Fchmod(fd, 0o600) // the mode that bind gives the file
	if err == nil {
		unix.Unlink(path) // no other process uses the name while our segment has its own
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: path})
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// closeBells is part of Close.
func (i *Iface) closeBells() {
	for _, fd := range []int{i.bellFD, i.bellDir.fd, int(i.ringFD.Swap(-1))} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	i.bellFD = -1
}

// DoorbellFD is the doorbell's file descriptor, -1 before EnableWait and after
// Close.
func (i *Iface) DoorbellFD() int {
	if !i.usable() {
		return -1
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.bellFD
}

// Arm asks senders to ring. A thread that has begun to sleep may call it, and
// Disarm, while another closes the interface.
func (i *Iface) Arm() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.usable() {
		atomic.StoreUint32(i.seg.armed(), 1)
	}
}

// Disarm takes it back and empties the doorbell. A byte that comes after it,
// from a sender that saw armed before, makes one later sleep short.
func (i *Iface) Disarm() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.usable() {
		return
	}
	atomic.StoreUint32(i.seg.armed(), 0)
	if i.bellFD < 0 {
		return
	}
	var b [8]byte
	for range 1 << 12 { // bounded: a peer may go on ringing
		_, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(i.bellFD), uintptr(unsafe.Pointer(&b)), unsafe.Sizeof(b))
		if errno != 0 && errno != unix.EINTR {
			return
		}
	}
}

// Pending reports whether Progress would find something. Any thread may ask.
func (i *Iface) Pending() bool {
	if !i.usable() {
		return false
	}
	for n := range i.rx.active() {
		if i.rx.rings[n].ready() {
			return true
		}
	}
	return false
}

// Wake rings the peer's doorbell if it sleeps.
func (e *Endpoint) Wake() {
	if !e.dead.Load() && e.iface.usable() && atomic.LoadUint32(e.armed) != 0 {
		e.iface.ring(&e.bell)
	}
}

// ring sends a byte to a doorbell. If that is full, it rings already; if it is
// gone, no thread sleeps; and if we have no descriptor left, the sleeper polls
// again after its timeout. So no error matters.
func (i *Iface) ring(to *bellAddr) {
	fd := i.ringFD.Load()
	if fd < 0 {
		n, err := bellSocket()
		if err != nil {
			return
		}
		fd = int32(n)
		if !i.ringFD.CompareAndSwap(-1, fd) {
			unix.Close(n)
			fd = i.ringFD.Load()
		}
	}
	var b [1]byte
	unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b)), 1,
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, uintptr(unsafe.Pointer(&to.raw)), to.n)
}
