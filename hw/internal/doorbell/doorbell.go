// Package doorbell is what a thread sleeps on until an interface of a device has something to do: a descriptor that is
// readable while one of the device's own is, or after [Bell.Ring].
package doorbell

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Source is a descriptor of the device, and the epoll events of it that make the doorbell readable. The device keeps
// it open until the bell is closed.
type Source struct {
	FD     int
	Events uint32
}

// Bell is an epoll descriptor over the device's descriptors, and an event file by which threads ring.
type Bell struct {
	event int          // immutable
	poll  atomic.Int32 // -1 until Enable and after Close, which store it, one at a time; read by any thread
}

// New returns a bell without a descriptor, which [Bell.Enable] makes. Errors are of the kernel (EMFILE, ENFILE,
// ENOMEM).
func New() (*Bell, error) {
	b := &Bell{}
	b.poll.Store(-1)
	var err error
	if b.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("doorbell: event file: %w", err)
	}
	return b, nil
}

// Enable makes the descriptor over some sources, the first time. Errors are of the kernel (EMFILE, ENOMEM, ENOSPC). One
// thread at a time calls it.
func (b *Bell) Enable(sources ...Source) error {
	if b.poll.Load() >= 0 {
		return nil
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("doorbell: %w", err)
	}
	for _, s := range append(sources, Source{b.event, unix.EPOLLIN}) {
		e := unix.EpollEvent{Events: s.Events, Fd: int32(s.FD)}
		if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, s.FD, &e); err != nil {
			return errors.Join(fmt.Errorf("doorbell: descriptor %d: %w", s.FD, err), unix.Close(fd))
		}
	}
	b.poll.Store(int32(fd))
	return nil
}

// FD is what a thread sleeps on, -1 before Enable.
func (b *Bell) FD() int { return int(b.poll.Load()) }

// one is what Ring adds to the event file.
var one = binary.NativeEndian.AppendUint64(nil, 1)

// Ring makes the descriptor readable until [Bell.Drain]. Before Enable no thread sleeps, and it does nothing. Any
// thread
// may call it.
func (b *Bell) Ring() {
	if b.poll.Load() >= 0 {
		_, _ = unix.Write(b.event, one) // full: it rings already
	}
}

// Drain takes back what Ring has done.
func (b *Bell) Drain() { Drain(b.event) }

// Drain empties an event or timer file, which may be empty.
func Drain(fd int) {
	var count [8]byte
	_, _ = unix.Read(fd, count[:]) // EAGAIN: it is empty
}

// Close closes the bell's own descriptors. No thread calls Ring any more.
func (b *Bell) Close() error {
	err := unix.Close(b.event)
	if fd := b.poll.Swap(-1); fd >= 0 {
		err = errors.Join(err, unix.Close(int(fd)))
	}
	return err
}
