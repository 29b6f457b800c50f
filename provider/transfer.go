package provider

import (
	"slices"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/congestion"
)

// transfer is a long one-sided operation in a lane. Its work is mover's.
type transfer struct {
	congestion.Operation
	e      *Endpoint
	lane   *segmentLane
	id     uint64 // of the rmaRequest, or of the recvOp
	status fi.Errno
	mover  mover
	flying []flight // posted as messages and not answered, in order

	// of a write as messages
	part flight // the segment that is being sent
	sent uint64 // bytes of it
}

// flight is a segment of which left bytes are to come.
type flight struct {
	segment congestion.Segment
	left    uint64
}

// mover does the work of one kind of transfers.
type mover interface {
	// post posts a segment, which Next has just returned. It reports whether the
	// segment has ended already, and false for posted if there was no room:
	// then lane.sending or Unpost remembers what is left.
	post(t *transfer, seg congestion.Segment) (ended, posted bool)
	// finish ends the operation with t.status.
	finish(t *transfer)
	// lost reports whether nothing will end what is in flight, because the peer
	// is gone.
	lost() bool
}

// newTransfer returns a transfer.
func (e *Endpoint) newTransfer(id uint64, m mover) *transfer {
	var t *transfer
	if n := len(e.spareTransfers); n != 0 {
		t, e.spareTransfers = e.spareTransfers[n-1], e.spareTransfers[:n-1]
	} else {
		t = &transfer{}
	}
	t.e, t.id, t.mover, t.status = e, id, m, fi.Success
	return t
}

func (t *transfer) post(seg congestion.Segment) (ended, posted bool) { return t.mover.post(t, seg) }

// unpost takes a segment back that the interface has no room for.
func (t *transfer) unpost(seg congestion.Segment) (ended, posted bool) {
	t.lane.Unpost(&t.Operation, seg)
	return false, false
}

// ended takes in that a segment has ended, with the transfer's status, late before
// now as far as somebody knows (hw.Completion). What the window lets out then is
// posted by the caller.
func (t *transfer) ended(seg congestion.Segment, late time.Duration) {
	finished := false
	if t.status == fi.Success {
		now := t.e.now()
		finished = t.lane.Done(now, &t.Operation, seg, seg.Took(now, late))
	} else {
		finished = t.lane.Fail(&t.Operation, seg, t.status)
	}
	if finished {
		t.finish()
	}
}

// fail ends a segment that could not be posted.
func (t *transfer) fail(seg congestion.Segment, status fi.Errno) (ended, posted bool) {
	if t.status == fi.Success {
		t.status = status
	}
	t.ended(seg, 0)
	return true, true
}

// finish ends the operation.
func (t *transfer) finish() {
	n := t.lane
	n.all = slices.DeleteFunc(n.all, func(o *transfer) bool { return o == t })
	t.mover.finish(t)
	*t = transfer{flying: t.flying[:0]}
	e := n.owner
	if len(e.spareTransfers) < spareTransfers {
		e.spareTransfers = append(e.spareTransfers, t)
	}
}

// spareTransfers is how many transfers an endpoint keeps for use again.
const spareTransfers = 64

// lose ends a transfer whose peer is gone, or has it end with what is in flight.
func (t *transfer) lose(status fi.Errno) {
	if t.status == fi.Success {
		t.status = status
	}
	if t.lane.Abort(&t.Operation, t.status) || t.mover.lost() {
		t.finish()
	}
}
