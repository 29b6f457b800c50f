package rma

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/provider/internal/flow"
)

// Reads and writes in segments that a transport's device does; see deviceOp, of which
// keys and registrations are used.

// deviceMover moves the data of one request. Where the device refuses, the
// request begins anew as messages.
type deviceMover struct {
	*Flow
	op      *deviceOp
	refused bool
}

// segmentPiece is a segment that is with the device. It belongs to the lease
// holder and is used again.
type segmentPiece struct {
	done hw.Completion
	m    *deviceMover
	t    *flow.Transfer
	seg  congestion.Segment
	next *segmentPiece
}

// Lost is false: the transport ends what is with the device.
func (*deviceMover) Lost() bool { return false }

// End completes the request, or begins it anew as messages.
func (m *deviceMover) End(t *flow.Transfer) {
	pr, id := m.pr, t.ID
	m.op.leave()
	req, ok := pr.in.requests.Lookup(id)
	if !ok || !m.refused || m.path.Err() != nil {
		messageMover{m.Flow}.End(t)
		return
	}
	m.op.forgetKeys(req)
	req.flags |= flagMessages
	again := pr.flows.Transfer(id, messageMover{m.Flow})
	pr.transfers[id] = again
	m.Begin(again, req.total)
}

// Post gives a segment to the device.
func (m *deviceMover) Post(t *flow.Transfer, seg congestion.Segment) (ended, posted bool) {
	pr := m.pr
	req, ok := pr.in.requests.Lookup(t.ID)
	if !ok || m.path.Err() != nil {
		return t.Fail(seg, fi.ECONNRESET)
	}
	i, part, at, left := req.locate(uint64(seg.Offset))
	local, bytes := m.op.gather(req, uint64(seg.Offset), min(left, uint64(seg.Length)))
	n := int64(bytes)
	if n == 0 {
		return t.Fail(seg, m.failed(errNoPiece))
	}
	if n < seg.Length {
		t.Trim(&seg, n)
	}
	d := pr.spare.take(m, t, seg)
	status, err := m.op.move(req, local, part.Addr+at, m.op.keys[i], &d.done)
	if err == nil && status == hw.InProgress {
		return false, true
	}
	pr.spare.put(d)
	switch {
	case err == nil:
		t.Ended(seg, 0)
		return true, true
	case errors.Is(err, hw.ErrNoResource):
		return t.Unpost(seg)
	}
	return t.Fail(seg, m.failed(err))
}

// failed notes why a segment failed.
func (m *deviceMover) failed(err error) fi.Errno {
	if errors.Is(err, hw.ErrPeerDead) || errors.Is(err, hw.ErrCanceled) {
		return fi.ECONNRESET
	}
	m.refused = true
	return fi.EIO
}

// segmentPool has pieces for use again.
type segmentPool struct{ free *segmentPiece }

// take returns a piece for a segment of a transfer.
func (p *segmentPool) take(m *deviceMover, t *flow.Transfer, seg congestion.Segment) *segmentPiece {
	d := p.free
	if d == nil {
		d = &segmentPiece{}
		d.done.Func = func(c *hw.Completion) { d.ended(c.Err()) }
	} else {
		p.free = d.next
	}
	d.m, d.t, d.seg, d.next = m, t, seg, nil
	d.done.Expect(1)
	return d
}

func (p *segmentPool) put(d *segmentPiece) {
	d.m, d.t, d.next, p.free = nil, nil, p.free, d
}

// ended takes in that a segment has ended. The transport calls it under the
// progress lease, or while the endpoint closes.
func (d *segmentPiece) ended(err error) {
	m, t, seg, late := d.m, d.t, d.seg, d.done.Late
	if m.pr.in.host.Closed() {
		return
	}
	m.pr.spare.put(d)
	if err != nil && t.Status == fi.Success {
		t.Status = m.failed(err)
	}
	t.Ended(seg, late)
	m.Pump()
}

// Leave takes back what was registered for operations that an endpoint which is closed leaves under way.
func (pr *Protocol) Leave() {
	pr.in.devices.leave()
	for _, t := range pr.transfers {
		if m, ok := t.Mover.(*deviceMover); ok {
			m.op.leave()
		}
	}
}
