package cxi

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// bell is what a sleeping thread waits on: an epoll descriptor around the NIC's wait object, which raises POLLPRI, an
// event file, which other threads ring, and a timer for what is to be sent again.
type bell struct {
	i     *Iface
	event int          // immutable
	timer int          // immutable
	poll  atomic.Int32 // -1 until EnableWait
}

func newBell(i *Iface) (*bell, error) {
	b := &bell{i: i}
	b.poll.Store(-1)
	var err error
	if b.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("cxi: event file: %w", err)
	}
	if b.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("cxi: timer: %w", err), unix.Close(b.event))
	}
	return b, nil
}

// ring wakes a sleeper because the lease holder has something to do. Any thread.
func (b *bell) ring() {
	if b.poll.Load() < 0 {
		return
	}
	one := [8]byte{1}
	_, _ = unix.Write(b.event, one[:]) // full: it rings already
}

// after wakes a sleeper in a while, or not with 0.
func (b *bell) after(d time.Duration) {
	t := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	_ = unix.TimerfdSettime(b.timer, 0, &t, nil) // both are valid
}

func (b *bell) close() error {
	err := errors.Join(unix.Close(b.event), unix.Close(b.timer))
	if fd := b.poll.Swap(-1); fd >= 0 {
		err = errors.Join(err, unix.Close(int(fd)))
	}
	return err
}

// EnableWait makes the doorbell.
func (i *Iface) EnableWait() error {
	if i.closed.Load() {
		return errClosed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bell.poll.Load() >= 0 {
		return nil
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("cxi: doorbell: %w", err)
	}
	for f, events := range map[int]uint32{i.wait.FD(): unix.EPOLLPRI, i.bell.event: unix.EPOLLIN, i.bell.timer: unix.EPOLLIN} {
		if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, f, &unix.EpollEvent{Events: events, Fd: int32(f)}); err != nil {
			return errors.Join(fmt.Errorf("cxi: doorbell: %w", err), unix.Close(fd))
		}
	}
	i.bell.poll.Store(int32(fd))
	return nil
}

// DoorbellFD becomes readable when there is something to do between Arm and Disarm.
func (i *Iface) DoorbellFD() int { return int(i.bell.poll.Load()) }

// Arm asks for the bell.
func (i *Iface) Arm() {
	i.interrupts(true)
	if i.anyTodo.Load() || i.rx.relists.Load() || i.match != nil && i.match.rx.later.Load() {
		i.bell.after(lastBackoff)
	}
}

// interrupts has all event queues raise the wait object, or none.
func (i *Iface) interrupts(on bool) {
	for _, q := range i.tx {
		q.take()
		q.events.Interrupts(on)
		q.give()
	}
	i.rx.events.Interrupts(on)
	if i.match != nil {
		i.match.interrupts(on)
	}
}

// Pending reports whether Progress would find something.
func (i *Iface) Pending() bool {
	if i.closed.Load() {
		return false
	}
	if i.rx.events.Waiting() || i.match != nil && i.match.pending() {
		return true
	}
	for _, q := range i.tx {
		if q.anyCompleted.Load() || q.posted.load() != 0 && q.events.Waiting() {
			return true
		}
	}
	return false
}

// Attention reports whether Progress has something to do in a while without an event: what is asked for again,
// and receives and one-sided operations that wait for room.
func (i *Iface) Attention() bool {
	return !i.closed.Load() && (i.anyTodo.Load() || i.flushes.Any() || i.match != nil && i.match.awaits())
}

// Disarm takes the wish back and empties the doorbell.
func (i *Iface) Disarm() {
	i.interrupts(false)
	i.bell.after(0)
	i.wait.Clear()
	var b [8]byte
	_, _ = unix.Read(i.bell.event, b[:]) // empty: no doorbell
	_, _ = unix.Read(i.bell.timer, b[:])
}
