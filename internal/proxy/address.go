package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrPeer is returned, wrapped, when the process at the other end of a socket
// is not the user's own.
var ErrPeer = errors.New("proxy: peer of another user")

// Address returns the name of a process's socket: an abstract one, which the
// kernel removes with the process and keeps apart by network namespace. what is
// "service" or "fd"; namespace is that of the process id.
func Address(what string, namespace uint64, pid int) string {
	return fmt.Sprintf("@weft-%s/%d/%d", what, namespace, pid)
}

// OwnAddress is the Address of this process.
func OwnAddress(what string) string { return Address(what, pidNamespace(), os.Getpid()) }

// PeerAddress is the Address of a process in the same pid namespace.
func PeerAddress(what string, pid int) string { return Address(what, pidNamespace(), pid) }

// pidNamespace is the number of the process's pid namespace, 0 if it cannot be
// read.
var pidNamespace = sync.OnceValue(func() uint64 {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) != nil {
		return 0
	}
	return st.Ino
})

// startTime is that of this process, 0 if it cannot be read.
var startTime = sync.OnceValue(func() uint64 {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // from the third on
	if len(fields) < 20 {
		return 0
	}
	n, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0
	}
	return n
})

// credentials returns which process is at the other end of a connected socket, as the
// kernel knows it. The error wraps [ErrPeer] for a process of another user.
func credentials(fd int) (*unix.Ucred, error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, fmt.Errorf("peer credentials: %w", err)
	}
	if int(c.Uid) != os.Geteuid() {
		return c, fmt.Errorf("process %d of user %d: %w", c.Pid, c.Uid, ErrPeer)
	}
	return c, nil
}

func seqpacket(flags int) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|flags, 0)
	if err != nil {
		return -1, fmt.Errorf("open socket: %w", err)
	}
	return fd, nil
}

// listen binds a socket. The error wraps unix.EADDRINUSE when the process has
// one of that address already.
func listen(address string) (int, error) {
	fd, err := seqpacket(unix.SOCK_NONBLOCK)
	if err != nil {
		return -1, err
	}
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: address}); err == nil {
		err = unix.Listen(fd, 128)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listen at %s: %w", address, err)
	}
	return fd, nil
}

func connect(fd int, address string) error {
	for {
		err := unix.Connect(fd, &unix.SockaddrUnix{Name: address})
		if err != unix.EINTR { // only before anything has happened
			return timeout(err)
		}
	}
}

// dial connects to a socket and checks the process that listens there.
func dial(address string, timeout time.Duration) (int, *unix.Ucred, error) {
	fd, err := seqpacket(0)
	if err != nil {
		return -1, nil, err
	}
	tv := unix.NsecToTimeval(int64(max(timeout, time.Microsecond)))
	for _, option := range []int{unix.SO_SNDTIMEO, unix.SO_RCVTIMEO} {
		if err == nil {
			err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &tv)
		}
	}
	if err == nil {
		err = connect(fd, address)
	}
	var peer *unix.Ucred
	if err == nil {
		peer, err = credentials(fd)
	}
	if err != nil {
		unix.Close(fd)
		return -1, nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	return fd, peer, nil
}
