package verbs

import (
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
)

// The doorbell (hw.Waiter): Arm, then Pending; if that is false, sleep on DoorbellFD; then Disarm.

// bell is what a sleeping thread waits on: an epoll descriptor over the
// completion channel, by which the device rings, and an event file, by which
// other threads ring for the lease holder.
type bell struct {
	i     *Iface
	event int          // immutable
	poll  atomic.Int32 // the epoll descriptor, -1 until EnableWait. Stored under Iface.mu, read by any thread
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

// close closes the descriptors. No thread calls ring any more.
func (b *bell) close() error {
	var err error
	if fd := b.poll.Swap(-1); fd >= 0 {
		err = unix.Close(int(fd))
	}
	return errors.Join(err, unix.Close(b.event))
}

// EnableWait makes the doorbell, once. Errors are of the kernel (EMFILE, ENOMEM).
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
		if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, f, &unix.EpollEvent{Events: unix.EPOLLIN,
			Fd: int32(f)}); err != nil {
			return errors.Join(fmt.Errorf("verbs: doorbell: %w", err), unix.Close(fd))
		}
	}
	i.bell.poll.Store(int32(fd))
	return nil
}

// DoorbellFD becomes readable when there is something to do between Arm and Disarm. -1 before EnableWait.
func (i *Iface) DoorbellFD() int { return int(i.bell.poll.Load()) }

// Arm has the device ring with the next completion of each queue.
func (i *Iface) Arm() {
	for _, q := range i.rx.cqs {
		if err := q.Arm(); err != nil {
			i.logf("%v", err)
		}
	}
}

// Pending reports whether Progress would find something. It polls the completion queues for the lease holder, which
// finds the completions staged. True also where it cannot poll, because another thread does or has polled completions
// left: what comes behind those and before Arm does not ring.
func (i *Iface) Pending() bool {
	if i.closed.Load() {
		return false
	}
	polled, p := i.rx.poll(), i.rx.transport
	return !polled || p.Staged() != 0 || i.anyTodo.Load() || i.signalsDue.Load() ||
		p.Calls.Load()&transport.CallPost != 0
}

// Disarm empties the doorbell.
func (i *Iface) Disarm() {
	i.channel.Drain()
	var b [8]byte
	_, _ = unix.Read(i.bell.event, b[:]) // an empty one is no error
}
