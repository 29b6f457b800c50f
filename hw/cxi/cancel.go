package cxi

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// Receives that are cancelled.

// CancelReceive takes a receive back.
func (m *matcher) CancelReceive(name hw.MatchID) error {
	x := &m.rx
	x.lock.take()
	defer x.lock.give()
	r := x.receive(uint32(name))
	if r != nil && hw.MatchID(r.generation) != name>>32 {
		r = nil
	}
	return x.withdraw(r)
}

// CancelContext takes the receive with a context back.
func (m *matcher) CancelContext(context uint64) error {
	x := &m.rx
	x.lock.take()
	defer x.lock.give()
	for k := range x.list {
		if r := &x.list[k]; r.state == receivePosted && r.context == context {
			return x.withdraw(r)
		}
	}
	return x.withdraw(nil)
}

// withdraw takes a receive back, nil: it has ended. The caller has the lock.
func (x *matchRx) withdraw(r *receive) error {
	if r == nil || r.state != receivePosted || r.canceling || r.taken || x.down.Load() {
		return fmt.Errorf("cxi: cancel a receive that has ended: %w", hw.ErrInvalid)
	}
	if r.posted != nil {
		x.soft.withdraw(r)
		x.remove(r)
		return nil
	}
	for k, w := range x.waiting {
		if w == r.id && !(k == 0 && x.probing) {
			x.waiting = append(x.waiting[:k], x.waiting[k+1:]...)
			x.remove(r)
			return nil
		}
	}
	if r.recalling || !x.portal.q.Room(1) || !x.portal.q.Unlink(&r.entry) {
		return hw.ErrNoResource
	}
	x.slots[x.portal.q.LastSlot()] = uint16(r.id)
	r.canceling = true
	x.portal.q.Ring()
	return nil
}

// remove has progress end a receive that is matched no more. The caller has the lock.
func (x *matchRx) remove(r *receive) {
	x.removed = append(x.removed, r.id)
	r.canceling = true
	x.retries.Store(true)
	x.soft.local.Store(true)
	x.m.i.bell.Ring()
}

// unlinked takes in the answer to the cancelling of a receive.
func (x *matchRx) unlinked(r *receive, code uint32) {
	if r.recalling {
		x.flow.cameBack(r, code)
		return
	}
	x.lock.take()
	r.canceling = false
	ended := r.state == receiveEnded
	if ended {
		x.freeID(r)
	}
	x.lock.give()
	if ended || code != wire.RcOk {
		return // it has a message
	}
	r.canceled = true
	switch {
	case r.multi:
		x.leaving.add(r)
	case len(r.parts) == 0:
		x.takenBack(r)
	}
}

// takenBack ends a receive that was cancelled.
func (x *matchRx) takenBack(r *receive) {
	ev := hw.MatchEvent{Kind: hw.MatchCanceled, Context: r.context, Last: true, Err: hw.ErrCanceled}
	x.retire(r)
	x.say(&ev)
}

// leavingDelay is how long a receive of many messages rests after the NIC has taken it out of its list: messages that
// it had matched before may be landing, and are reported behind that. One that takes longer is lost, and is counted.
const leavingDelay = 10 * time.Millisecond

// leaving are receives of many messages that the NIC has taken out of its list by a command. Lease.
type leaving struct {
	list []leavingReceive // in the order of until
}

type leavingReceive struct {
	r     *receive
	until time.Time
}

func (l *leaving) add(r *receive) {
	r.leaving = true
	l.list = append(l.list, leavingReceive{r, time.Now().Add(leavingDelay)})
}

// endLeaving ends those of which no message is to come any more, and returns how many. Lease.
func (x *matchRx) endLeaving() (n int) {
	l := &x.leaving
	if len(l.list) == 0 {
		return 0
	}
	now := time.Now()
	l.list = slices.DeleteFunc(l.list, func(e leavingReceive) bool {
		if !e.r.leaving {
			return true // it has ended by its last message
		}
		if now.Before(e.until) {
			return false
		}
		e.r.leaving = false
		if len(e.r.parts) == 0 {
			x.takenBack(e.r)
			n++
		}
		return true // else its last message ends it
	})
	return n
}
