package udp

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waiter is the doorbell: an epoll set of the sockets, which are in it only
// while a thread sleeps, and of an event file for messages that others than
// the sleeper took off a socket, and for operations that nothing but time has ended.
//
//	sleeper                     holder of a stripe's lease
//	S1: armed = 1               R1: a connection becomes ready, an operation ends
//	S2: is something ready?     R2: armed? then write the event file; give the lease back
//
// S1 and R1 go before S2 and R2 (all are sequentially consistent), so one of
// them sees the other.
type waiter struct {
	mu    sync.Mutex // guards the set; Arm and Disarm take it, no message does
	epoll int        // -1 before EnableWait
	event int
	armed atomic.Uint32 // number of sleepers' wishes: 0 or 1. Written with mu, read by holders of a lease.
	shut  bool
}

// EnableWait makes the doorbell.
func (i *Iface) EnableWait() error {
	w := &i.wait
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epoll >= 0 || w.shut {
		return nil
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("udp: doorbell: %w", err)
	}
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(epoll)
		return fmt.Errorf("udp: doorbell: %w", err)
	}
	fds := []int{event}
	for _, s := range i.stripes {
		fds = append(fds, s.socket.Files()...)
	}
	for n, fd := range fds {
		e := unix.EpollEvent{Fd: int32(fd)}
		if n == 0 {
			e.Events = unix.EPOLLIN
		}
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
			_ = unix.Close(event)
			_ = unix.Close(epoll)
			return fmt.Errorf("udp: doorbell: %w", err)
		}
	}
	w.epoll, w.event = epoll, event
	return nil
}

// DoorbellFD becomes readable when something arrives between Arm and Disarm;
// it may be nothing to deliver.
func (i *Iface) DoorbellFD() int {
	i.wait.mu.Lock()
	defer i.wait.mu.Unlock()
	return i.wait.epoll
}

// Arm asks for the bell. What is owed to peers is sent first: the caller is
// going to sleep.
func (i *Iface) Arm() {
	for _, s := range i.stripes {
		if s.lease.spin() {
			s.work()
			s.hush()
			s.leave()
		}
	}
	i.wait.set(i, unix.EPOLLIN)
}

// hush sends all acknowledgements, those that could wait too.
func (s *stripe) hush() {
	now := s.i.now()
	for _, c := range s.timed {
		if c.rx.ackDue != 0 {
			c.rx.owe(now, true)
		}
	}
	s.acks(now)
}

// Disarm takes the wish back and empties the doorbell.
func (i *Iface) Disarm() { i.wait.set(i, 0) }

// set has the sockets ring or not.
func (w *waiter) set(i *Iface, events uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epoll < 0 || w.shut {
		return
	}
	if events == 0 {
		w.armed.Store(0)
		var b [8]byte
		_, _ = unix.Read(w.event, b[:])
	}
	for _, s := range i.stripes {
		s.socket.Bell(events != 0)
		for _, fd := range s.socket.Files() {
			e := unix.EpollEvent{Events: events, Fd: int32(fd)}
			err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_MOD, fd, &e)
			if err == unix.ENOENT { // a near peer's, made since
				err = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &e)
			}
			if err != nil {
				i.logf("doorbell: %v", err)
			}
		}
	}
	if events != 0 {
		w.armed.Store(1)
	}
}

// approach gives a peer a socket of its own, unless a thread sleeps on those that
// there are. The caller has the lease of s.
func (w *waiter) approach(s *stripe) {
	if s.i.cfg.Impair != nil || !w.mu.TryLock() {
		return
	}
	defer w.mu.Unlock()
	if w.armed.Load() != 0 || w.shut {
		return
	}
	if err := s.socket.MakeNear(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		s.i.logf("%v", err)
	}
}

// bell rings if a thread sleeps and s has something for Progress. The caller has the lease of s.
func (w *waiter) bell(s *stripe) {
	if s.ready.Load() > 0 && w.armed.Load() != 0 {
		one := uint64(1)
		_, _ = unix.Write(w.event, unsafe.Slice((*byte)(unsafe.Pointer(&one)), 8))
	}
}

// pendingWait is how long Pending waits for a lease. Its callers are about to sleep; a true answer has polls include
// the port for a millisecond at least.
const pendingWait = 500 * time.Microsecond

// Pending reports whether Progress would find something. Any thread may ask. Where it cannot find out,
// because another thread has a stripe's lease for long, it says so: what stands in an inbox by then rings no bell.
func (i *Iface) Pending() bool {
	if i.closed.Load() {
		return false
	}
	if i.anyReady() {
		return true
	}
	for _, s := range i.stripes {
		if !s.lease.lockWithin(pendingWait) {
			return true
		}
		s.work()
		s.leave()
	}
	return i.anyReady()
}

// close gives the descriptors back.
func (w *waiter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shut || w.epoll < 0 {
		w.shut = true
		return
	}
	w.shut = true
	w.armed.Store(0)
	_ = unix.Close(w.epoll)
	_ = unix.Close(w.event)
	w.epoll, w.event = -1, -1
}
