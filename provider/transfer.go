package provider

import (
	"slices"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/congestion"
)

// transfer is a long operation that is cut into segments, on the flow of its peer (segmentFlow): a read or write of the
// application (transfer_rma.go, transfer_device.go), or the read of a rendezvous (transfer_get.go). mover does the work
// that differs between these. It belongs to the holder of the progress lease.
type transfer struct {
	congestion.Operation
	e      *leasedEP
	flow   *segmentFlow // the flow
	id     uint64       // of the rmaRequest, or of the recvOp
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
	// then flow.sending or Unpost remembers what is left.
	post(t *transfer, seg congestion.Segment) (ended, posted bool)
	// finish ends the operation with t.status.
	finish(t *transfer)
	// lost reports whether segments in flight end no more when the peer is gone.
	lost() bool
}

// newTransfer returns a transfer.
func (e *leasedEP) newTransfer(id uint64, m mover) *transfer {
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
	t.flow.Unpost(&t.Operation, seg)
	return false, false
}

// ended takes in that a segment has ended, with the transfer's status. late is how long before now it ended, as far as
// its completion says (hw.Completion). The caller posts what the window has room for then.
func (t *transfer) ended(seg congestion.Segment, late time.Duration) {
	var finished bool
	if t.status == fi.Success {
		now := t.e.now()
		finished = t.flow.Done(now, &t.Operation, seg, seg.Took(now, late))
	} else {
		finished = t.flow.Fail(&t.Operation, seg, t.status)
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
	n := t.flow
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
	if t.flow.Abort(&t.Operation, t.status) || t.mover.lost() {
		t.finish()
	}
}
