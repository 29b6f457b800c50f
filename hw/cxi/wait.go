package cxi

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw/internal/doorbell"
)

// bell is the doorbell: of the NIC's wait object, which raises POLLPRI, of other threads, and of a timer for what is to
// be sent again.
type bell struct {
	*doorbell.Bell     // immutable
	timer          int // immutable
}

func newBell() (*bell, error) {
	b, err := doorbell.New()
	if err != nil {
		return nil, fmt.Errorf("cxi: %w", err)
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cxi: timer: %w", err), b.Close())
	}
	return &bell{b, fd}, nil
}

// after wakes a sleeper in a while, or not with 0.
func (b *bell) after(d time.Duration) {
	t := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	_ = unix.TimerfdSettime(b.timer, 0, &t, nil) // both are valid
}

func (b *bell) close() error { return errors.Join(b.Close(), unix.Close(b.timer)) }

// EnableWait makes the doorbell.
func (i *Iface) EnableWait() error {
	if i.closed.Load() {
		return errClosed
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	err := i.bell.Enable(
		doorbell.Source{FD: i.wait.FD(), Events: unix.EPOLLPRI},
		doorbell.Source{FD: i.bell.timer, Events: unix.EPOLLIN},
	)
	if err != nil {
		return fmt.Errorf("cxi: %w", err)
	}
	return nil
}

// DoorbellFD becomes readable when there is something to do between Arm and Disarm.
func (i *Iface) DoorbellFD() int { return i.bell.FD() }

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
	i.bell.Drain()
	doorbell.Drain(i.bell.timer)
}
