package cq

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// event is an event file and whether it is readable. mu covers the one system
// call that changes both; it is taken only when a thread sleeps or is about to.
type event struct {
	fd int // immutable until close
	mu sync.Mutex
	up atomic.Bool // written under mu
}

func (e *event) open() (err error) {
	if e.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		e.fd = -1
		return fmt.Errorf("open eventfd: %w", err)
	}
	return nil
}

// raised reports whether the descriptor is readable, or is just being made so.
func (e *event) raised() bool { return e.up.Load() }

// one is the value that raise writes.
var one = binary.NativeEndian.AppendUint64(nil, 1)

// raise makes the descriptor readable.
func (e *event) raise() {
	if e.fd < 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.up.Swap(true) {
		_, _ = unix.Write(e.fd, one) // its count is 0: there is room
	}
}

// lower makes it unreadable.
func (e *event) lower() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.up.Swap(false) {
		drain(e.fd)
	}
}

// drain empties an event or timer file that may be empty.
func drain(fd int) {
	var b [8]byte
	_, _ = unix.Read(fd, b[:]) // EAGAIN: nothing to drain
}
