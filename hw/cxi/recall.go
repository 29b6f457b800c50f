package cxi

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// Receives that go from the NIC to software. A NIC that has left matching refuses appends, but one that has then
// stopped does them: of messages that software is to match such a receive finds none. As the NIC takes no messages
// then, all receives that it has are taken back, and software gets them in the order in which they were posted.

// recallMore takes back some more of the receives that the NIC has, if they are to be, and goes on with its messages
// when there are none.
func (f *flow) recallMore() {
	if f.core.recall {
		if !f.recallSome() {
			return
		}
		f.x.orderWaiting()
	}
	f.remove()
}

// orderWaiting puts the waiting receives, to which those have come that were taken back, into the order in which they
// were posted.
func (x *matchRx) orderWaiting() {
	x.lock.take()
	slices.SortFunc(x.waiting, func(a, b uint32) int {
		return cmp.Compare(x.list[a-x.firstID()].posting, x.list[b-x.firstID()].posting)
	})
	x.lock.give()
}

// recallSome posts commands that take receives back, and reports whether all are answered.
func (f *flow) recallSome() bool {
	x := f.x
	x.lock.take()
	defer x.lock.give()
	q := &x.portal.q
	for ; f.recalled < len(x.list) && f.recalls < removeAtOnce; f.recalled++ {
		r := &x.list[f.recalled]
		if !r.recallable() {
			continue
		}
		if !q.Room(1) || !q.Unlink(&r.entry) {
			f.again[flowRecall], f.againAt = true, time.Time{}
			break
		}
		x.slots[q.LastSlot()] = uint16(r.id)
		r.recalling = true
		f.recalls++
	}
	q.Ring()
	return f.recalls == 0 && f.recalled == len(x.list)
}

// recallable reports whether the NIC may have a receive in its list. It says of one that it does not have.
func (r *receive) recallable() bool {
	return r.state == receivePosted && r.posted == nil && r.once.r == nil && !r.taken && !r.unlinked &&
		!r.canceling && !r.recalling && !r.leaving
}

// cameBack takes in the answer to a command that takes a receive back: it waits for software, or has a message.
func (f *flow) cameBack(r *receive, code uint32) {
	x := f.x
	f.done()
	x.lock.take()
	r.recalling = false
	switch {
	case r.state == receiveEnded:
		x.freeID(r)
	case code == wire.RcOk:
		x.waiting = append(x.waiting, r.id)
		x.retries.Store(true)
	}
	x.lock.give()
	f.recalls--
	f.recallMore()
}

// recallRefused takes in that the NIC has refused such a command, which is posted again after a while.
func (f *flow) recallRefused(r *receive) {
	f.x.lock.take()
	r.recalling = false
	if r.state == receiveEnded { // by a message that the NIC had matched before
		f.x.freeID(r)
	}
	f.x.lock.give()
	f.recalls--
	f.recalled = min(f.recalled, int(r.id-f.x.firstID()))
	f.later(flowRecall)
}
