package weft

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

const (
	// batch is the most completions that one poll takes.
	batch = 4
	// spins is how often a call polls an empty queue before its goroutine is parked: some tens of microseconds.
	spins = 500
	// spinsPerYield is after how many of them other goroutines run.
	spinsPerYield = 16
	// pause is how long a call that finds no room to post sleeps between tries, once it has tried spins times.
	pause = 50 * time.Microsecond
)

// parking is what goroutines sleep on. One of them at a time, the leader, waits for the queue's descriptor in the
// runtime's poller; all others wait for a token of their own or to become the leader.
type parking struct {
	file *os.File
	raw  syscall.RawConn
	lead chan struct{} // holds one token while there is a leader
	// asleep is true while the leader may be in the poller. Written by the leader before it checks a last time what
	// it waits for, read by dispatch after that has changed; both seq_cst, so one of the two sees the other.
	asleep atomic.Bool
}

func (p *parking) init(f *os.File) (err error) {
	p.lead = make(chan struct{}, 1)
	p.file = f
	p.raw, err = f.SyscallConn()
	return err
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// interrupt makes the leader return from the poller. One that comes late makes a leader poll once without need.
func (p *parking) interrupt() {
	_ = p.file.SetReadDeadline(past) // fails only on a closed file, which has no waiters
}

// sleep returns when the queue may have something, ready holds, the context or the endpoint ends. The caller leads.
func (e *Endpoint) sleep(ctx context.Context, ready func() bool) error {
	p := &e.parking
	if err := p.file.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	p.asleep.Store(true)
	defer p.asleep.Store(false)
	if e.queue.TryWait() != nil || ready() || ctx.Err() != nil || e.isClosing() {
		return nil
	}
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, p.interrupt)()
	}
	err := p.raw.Read(readable)
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// readable reports whether a descriptor is. The poller reports edges, so it is asked again before each wait.
func readable(fd uintptr) bool {
	set := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(set[:], 0)
	return n > 0 || err != nil && err != unix.EINTR
}

func (e *Endpoint) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

// park waits until wake has a token, the queue may have something, or ready holds. It returns the context's error, and
// errClosed when the endpoint is being closed.
func (e *Endpoint) park(ctx context.Context, wake <-chan struct{}, ready func() bool) error {
	select {
	case <-wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.closing:
		return errClosed
	case e.parking.lead <- struct{}{}:
	}
	err := e.sleep(ctx, ready)
	<-e.parking.lead
	return err
}

// poll takes a batch of completions and dispatches them. It reports whether there were any.
func (e *Endpoint) poll() bool {
	var entries [batch]cq.Entry
	orderBegin()
	n, err := e.queue.Read(entries[:])
	orderEnd()
	for i := range entries[:n] {
		e.dispatch(&entries[i], nil)
	}
	if errors.Is(err, errAvail) {
		bad, none := e.queue.ReadErr()
		if none == nil { // else another goroutine has taken it
			e.dispatch(&bad.Entry, bad.Err.Err())
		}
		return true
	}
	return n > 0
}

// errAvail and errAgain are what package cq returns, as it returns them.
var (
	errAvail = fi.EAVAIL.Err()
	errAgain = fi.EAGAIN.Err()
)

// dispatch hands a completion to the goroutine that waits for it.
func (e *Endpoint) dispatch(c *cq.Entry, err error) {
	r := e.requests.at(c.Context)
	r.err, r.from, r.tag, r.n = err, Peer{}, c.Tag, len(r.buf)
	if r.op == OpRecv {
		r.n = int(c.Len)
		if c.Src != fi.AddrNotAvail {
			r.from = Peer{uint64(c.Src) + 1}
		}
	}
	if r.started {
		e.push(r)
	} else {
		switch r.state.Swap(done) {
		case parked:
			select {
			case r.wake <- struct{}{}:
			default: // a token that an earlier use of the request left wakes as well
			}
		case abandoned:
			e.requests.put(r)
			return
		}
	}
	if e.parking.asleep.Load() {
		e.parking.interrupt()
	}
}

// await returns when r is done: nil, whatever its result. Else r still is the operation's: the context has ended, or
// the endpoint is being closed (errClosed).
func (e *Endpoint) await(ctx context.Context, r *request) error {
	var s spinner
	for r.state.Load() != done {
		if again, err := s.poll(ctx, e); err != nil {
			return err
		} else if again {
			continue
		}
		if !r.state.CompareAndSwap(waiting, parked) {
			return nil
		}
		err := e.park(ctx, r.wake, func() bool { return r.state.Load() == done })
		if !r.state.CompareAndSwap(parked, waiting) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// spinner polls for a call that waits. The zero value has not polled.
type spinner struct {
	tries int
	idle  int // polls that found nothing since one that did
}

// poll polls once and reports whether to poll on; false: park the goroutine. The error is why the call must stop
// waiting.
func (s *spinner) poll(ctx context.Context, e *Endpoint) (again bool, err error) {
	if s.tries++; s.tries%spinsPerYield == 0 {
		if err := e.mustStop(ctx); err != nil {
			return false, err
		}
		runtime.Gosched()
	}
	if e.poll() {
		s.idle = 0
		return true, nil
	}
	s.idle++
	return s.idle < spins, nil
}

// mustStop returns why a call must stop waiting, if it must.
func (e *Endpoint) mustStop(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.isClosing() {
		return errClosed
	}
	return nil
}

// again makes progress between two tries to post. tries counts them.
func (e *Endpoint) again(ctx context.Context, tries int) error {
	if err := e.mustStop(ctx); err != nil {
		return err
	}
	if e.poll() || tries < spins {
		runtime.Gosched()
		return nil
	}
	time.Sleep(pause)
	return nil
}
