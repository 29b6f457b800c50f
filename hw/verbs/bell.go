package verbs

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw/verbs/ibv"
)

// bell is what a sleeping thread waits on: an epoll descriptor over the
// completion channel and an event file, which the service rings.
type bell struct {
	i     *Iface
	event int          // immutable
	poll  atomic.Int32 // -1 until EnableWait
}

func newBell(i *Iface) (*bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("verbs: event file: %w", err)
	}
	b := &bell{i: i, event: fd}
	b.poll.Store(-1)
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

func (b *bell) close() error {
	err := unix.Close(b.event)
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
		return fmt.Errorf("verbs: doorbell: %w", err)
	}
	for _, f := range []int{i.channel.FD, i.bell.event} {
		if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, f, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(f)}); err != nil {
			return errors.Join(fmt.Errorf("verbs: doorbell: %w", err), unix.Close(fd))
		}
	}
	i.bell.poll.Store(int32(fd))
	return nil
}

// DoorbellFD becomes readable when there is something to do between Arm and Disarm.
func (i *Iface) DoorbellFD() int { return int(i.bell.poll.Load()) }

// Arm asks for the bell.
func (i *Iface) Arm() {
	for _, q := range i.rx.cqs {
		if err := q.Arm(); err != nil {
			i.logf("%v", err)
		}
	}
}

// Pending reports whether Progress would find something. It looks by polling for
// the lease holder, who finds it staged. Where it cannot look, because another thread polls or has not
// dealt with all that it has polled, it says so: what came behind that, and before Arm, rings no bell.
func (i *Iface) Pending() bool {
	if i.closed.Load() {
		return false
	}
	looked, p := i.rx.poll(), i.rx.port
	return !looked || p.Staged.Load() != 0 || i.anyTodo.Load() || i.nudge.Load() || p.Calls.Load()&ibv.CallPost != 0
}

// Disarm takes the wish back and empties the doorbell.
func (i *Iface) Disarm() {
	i.channel.Drain()
	var b [8]byte
	_, _ = unix.Read(i.bell.event, b[:]) // empty: nobody rang
}
