package provider

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/rkey"
)

// Reads and writes in segments that a port's device does; see deviceOp, of which
// keys and registrations are used.

// deviceMover moves the data of one request. Where the device refuses, the
// request begins anew as messages.
type deviceMover struct {
	*segmentFlow
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

// moverOf chooses how a request's segments move.
func (e *leasedEP) moverOf(req *rmaRequest, id uint64, l *link, n *segmentFlow) flow.Mover {
	if req.flags&(rmaDelivers|rmaMessages) != 0 { // messages are answered when they are in place
		return e.moverByMessages(req, l, n)
	}
	a := RMAArgs{
		listed: req.flags&rmaListed != 0, IOV: req.iov[:req.count], Remote: req.remote[:req.parts],
		Read: req.flags&rmaIsRead != 0, HasData: req.flags&rmaHasData != 0,
	}
	op, _ := e.newDeviceOp(&a, l, n.path, req.total)
	if op == nil {
		return e.moverByMessages(req, l, n)
	}
	op.id = id
	e.stats.Shared(stats.SharedDevice, 1)
	l.countListed(&e.initiator, &a, nil, WayRDMA, req.total)
	return &deviceMover{segmentFlow: n, op: op}
}

// moverByMessages moves a request's segments as messages, or copies them.
func (e *initiator) moverByMessages(req *rmaRequest, l *link, n *segmentFlow) flow.Mover {
	a, way := RMAArgs{listed: req.flags&rmaListed != 0}, WayMessage
	if n.path.port.attr.Caps&directCaps == directCaps {
		if e.mayTake(&a, WayIPC) {
			way = WayIPC
		} else {
			req.flags |= rmaMessages
		}
	}
	l.countListed(e, &a, nil, way, req.total)
	return rmaMover{n}
}

// Lost is false: the transport ends what is with the device.
func (*deviceMover) Lost() bool { return false }

// Finish completes the request, or begins it anew as messages.
func (m *deviceMover) Finish(t *flow.Transfer) {
	e, id := m.e, t.ID
	m.op.leave()
	req, ok := e.rmas.Lookup(id)
	if !ok || !m.refused || m.path.Err() != nil {
		rmaMover{m.segmentFlow}.Finish(t)
		return
	}
	m.op.forgetKeys(req)
	req.flags |= rmaMessages
	again := e.flows.Transfer(id, rmaMover{m.segmentFlow})
	e.transfers[id] = again
	m.Begin(again, req.total)
}

// Post gives a segment to the device.
func (m *deviceMover) Post(t *flow.Transfer, seg congestion.Segment) (ended, posted bool) {
	e := m.e
	req, ok := e.rmas.Lookup(t.ID)
	if !ok || m.path.Err() != nil {
		return t.Fail(seg, fi.ECONNRESET)
	}
	i, part, at, left := req.locate(uint64(seg.Offset))
	local, bytes := m.op.gather(req, uint64(seg.Offset), min(left, uint64(seg.Length)))
	n := int64(bytes)
	if n < seg.Length {
		t.Trim(&seg, n)
	}
	d := e.spareSegments.take(m, t, seg)
	status, err := m.op.move(req, local, part.Addr+at, m.op.keys[i], &d.done)
	if err == nil && status == hw.InProgress {
		return false, true
	}
	e.spareSegments.put(d)
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
	e := m.e
	if e.state.Load() == stateClosed {
		return
	}
	e.spareSegments.put(d)
	if err != nil && t.Status == fi.Success {
		t.Status = m.failed(err)
	}
	t.Ended(seg, late)
	m.Pump()
}

// dropRegions takes back what was registered for transfers that an endpoint
// which is closed leaves unfinished.
func (e *leasedEP) dropRegions() {
	e.rendezvous.Close()
	rkey.Close(e.exposed.Clear())
	e.devices.leave()
	e.lists.Unregister()
	for _, t := range e.transfers {
		if m, ok := t.Mover.(*deviceMover); ok {
			m.op.leave()
		}
	}
}
