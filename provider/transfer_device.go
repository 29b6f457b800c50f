package provider

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/wire"
)

// Reads and writes in segments that a port's device does; see deviceOp, of which
// keys and registrations are used.

// deviceMover moves the data of one request. Where the device refuses, the
// request begins anew as messages.
type deviceMover struct {
	op      *deviceOp
	refused bool
}

// segmentPiece is a segment that is with the device. It belongs to the lease
// holder and is used again.
type segmentPiece struct {
	done hw.Completion
	t    *transfer
	seg  congestion.Segment
	next *segmentPiece
}

// moverOf chooses how a request's segments move.
func (e *leasedEP) moverOf(req *rmaRequest, id uint64, l *link, p *path) mover {
	if req.flags&(rmaDelivers|rmaMessages) != 0 { // messages are answered when they are in place
		return e.moverByMessages(req, l, p)
	}
	a := RMAArgs{listed: req.flags&rmaListed != 0, IOV: req.iov[:req.count], Remote: req.remote[:req.parts], Read: req.flags&rmaIsRead != 0, HasData: req.flags&rmaHasData != 0}
	op, _ := e.newDeviceOp(&a, l, p, req.total)
	if op == nil {
		return e.moverByMessages(req, l, p)
	}
	op.id = id
	e.stats.Shared(stats.SharedDevice, 1)
	l.countListed(&e.initiator, &a, nil, WayRDMA, req.total)
	return &deviceMover{op: op}
}

// moverByMessages moves a request's segments as messages, or copies them.
func (e *initiator) moverByMessages(req *rmaRequest, l *link, p *path) mover {
	a, way := RMAArgs{listed: req.flags&rmaListed != 0}, WayMessage
	if p.port.attr.Caps&directCaps == directCaps {
		if e.mayTake(&a, WayIPC) {
			way = WayIPC
		} else {
			req.flags |= rmaMessages
		}
	}
	l.countListed(e, &a, nil, way, req.total)
	return rmaMover{}
}

func (*deviceMover) lost() bool { return false }

func (m *deviceMover) finish(t *transfer) {
	e, id, n := t.e, t.id, t.flow
	closeAll(m.op.regions)
	m.op.regions = nil
	req, ok := e.rmas.Lookup(id)
	if !ok || !m.refused || n.path.Err() != nil {
		rmaMover{}.finish(t)
		return
	}
	m.op.forgetKeys(req)
	req.flags |= rmaMessages
	again := e.newTransfer(id, rmaMover{})
	e.transfers[id] = again
	n.start(again, req.total)
}

func (m *deviceMover) post(t *transfer, seg congestion.Segment) (ended, posted bool) {
	e, p := t.e, t.flow.path
	req, ok := e.rmas.Lookup(t.id)
	if !ok || p.Err() != nil {
		return t.fail(seg, fi.ECONNRESET)
	}
	i, part, at, left := req.locate(uint64(seg.Offset))
	var room [wire.IOVLimit]hw.Segment
	local, bytes := m.op.gather(room[:0], req, uint64(seg.Offset), min(left, uint64(seg.Length)))
	n := int64(bytes)
	if n < seg.Length {
		t.flow.Trim(&t.Operation, &seg, n)
	}
	d := e.spareSegments.take(t, seg)
	status, err := m.op.move(req, local, part.Addr+at, m.op.keys[i], &d.done)
	if err == nil && status == hw.InProgress {
		return false, true
	}
	e.spareSegments.put(d)
	switch {
	case err == nil:
		t.ended(seg, 0)
		return true, true
	case errors.Is(err, hw.ErrNoResource):
		return t.unpost(seg)
	}
	return t.fail(seg, m.failed(err))
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
func (p *segmentPool) take(t *transfer, seg congestion.Segment) *segmentPiece {
	d := p.free
	if d == nil {
		d = &segmentPiece{}
		d.done.Func = func(c *hw.Completion) { d.ended(c.Err()) }
	} else {
		p.free = d.next
	}
	d.t, d.seg, d.next = t, seg, nil
	d.done.Expect(1)
	return d
}

func (p *segmentPool) put(d *segmentPiece) {
	d.t, d.next, p.free = nil, p.free, d
}

// ended takes in that a segment has ended. The transport calls it under the
// progress lease, or while the endpoint closes.
func (d *segmentPiece) ended(err error) {
	t, seg, late := d.t, d.seg, d.done.Late
	e, n := t.e, t.flow
	if e.state.Load() == stateClosed {
		return
	}
	e.spareSegments.put(d)
	if err != nil && t.status == fi.Success {
		t.status = t.mover.(*deviceMover).failed(err)
	}
	t.ended(seg, late)
	n.pump(e)
}
