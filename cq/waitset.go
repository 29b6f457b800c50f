package cq

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
)

// WaitSet is a wait object that several queues and counters share
// (fi_wait_open(3)): they are opened with fi.WaitSet and the set. Its methods may
// be called by any thread.
type WaitSet struct {
	s *sleeper
	// users are the members, counted by any thread that opens or closes one; closed is set once, by Close. Both are
	// loaded by any thread; sequentially consistent.
	users  atomic.Int32
	closed atomic.Bool
	// visits is read-locked while members are visited outside the sleeper's lock, and locked once by a member that
	// leaves, which is then not visited any more. It is taken by waits, not on the data path.
	visits sync.RWMutex
}

// OpenWaitSet opens a set. The error wraps EINVAL for a kind that a set cannot
// have or for flags, or a system error.
func OpenWaitSet(attr *fi.WaitAttr) (*WaitSet, error) {
	if attr.Flags != 0 {
		return nil, fmt.Errorf("wait set flags %#x: %w", attr.Flags, fi.EINVAL)
	}
	s, err := newSleeper(attr.WaitObj)
	if err != nil {
		return nil, err
	}
	return &WaitSet{s: s}, nil
}

func (ws *WaitSet) join(w *Waiter) error {
	if ws.closed.Load() {
		return fmt.Errorf("wait set is closed: %w", fi.EINVAL)
	}
	ws.users.Add(1)
	ws.s.add(w)
	return nil
}

// leave takes a member out, which still uses the set. When it returns, no thread that waits on the set is at it.
func (ws *WaitSet) leave(w *Waiter) {
	ws.s.remove(w)
	ws.visits.Lock()
	defer ws.visits.Unlock() // those that found it in the list are done
}

// Kind returns the kind of wait object that was chosen: never fi.WaitUnspec.
func (ws *WaitSet) Kind() fi.WaitObj { return ws.s.kind }

// FD returns the descriptor to poll for input, -1 for fi.WaitYield.
func (ws *WaitSet) FD() int { return ws.s.epoll }

// OnWake is as [Waiter.OnWake].
func (ws *WaitSet) OnWake(f func()) { ws.s.wake = f }

// Close closes the set, unless queues or counters use it: EBUSY.
func (ws *WaitSet) Close() error {
	if ws.users.Load() > 0 {
		return fmt.Errorf("wait set has members: %w", fi.EBUSY)
	}
	if !ws.closed.Swap(true) {
		ws.s.close()
	}
	return nil
}

// Wait returns when a member has something to read or a counter has changed
// since it was last reported, or ETIMEDOUT after a time in milliseconds
// (negative: never).
func (ws *WaitSet) Wait(timeout int) error {
	for end := until(timeout); ; {
		if ws.poll() {
			return nil
		}
		if expired(end) {
			return fi.ETIMEDOUT.Err()
		}
		ws.sleep(end)
	}
}

func (ws *WaitSet) sleep(end time.Time) { ws.s.sleep(ws.found, end) }

// poll makes progress and reports the members that have something.
func (ws *WaitSet) poll() (found bool) {
	ws.visits.RLock()
	defer ws.visits.RUnlock()
	for _, m := range ws.s.all() {
		m.sources.progress()
		if m.pending() {
			m.report()
			found = true
		}
	}
	return found
}

// found reports whether a member has something. The caller has the sleeper's lock, without which none leaves.
func (ws *WaitSet) found() bool {
	for _, m := range ws.s.all() {
		if m.found() {
			return true
		}
	}
	return false
}

// TryWait is as [Waiter.TryWait], for all members.
func (ws *WaitSet) TryWait() error {
	if ws.s.tryArm(ws.found) {
		return nil
	}
	ws.visits.RLock()
	defer ws.visits.RUnlock()
	for _, m := range ws.s.all() {
		m.report()
	}
	return errAgain
}
