package provider

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/flow"
	"github.com/weft-fabric/weft/provider/outcome"
)

// Reads of rendezvous in segments.

// startSegmented begins to read an operation's payload over p in segments.
func (r *leasedRx) startSegmented(op *recvOp, n *segmentFlow, m flow.Mover) {
	op.pulled = true
	r.pulls[op.id()] = op.index
	t := n.e.flows.Transfer(op.id(), m)
	t.Grain = n.grain(true)
	n.Begin(t, op.want)
}

// opOf is the operation of a transfer that reads.
func (n *segmentFlow) opOf(t *flow.Transfer) *recvOp { return n.e.rx.ops.At(uint32(t.ID)) }

// finishRead ends the operation of a transfer that reads.
func (n *segmentFlow) finishRead(t *flow.Transfer) {
	op := n.opOf(t)
	op.done = uint64(t.Done())
	op.status = t.Status
	n.e.rx.finishOp(n.e, op)
}

// getMover reads by gets, which the transport completes.
type getMover struct{ *segmentFlow }

// Finish ends the read.
func (m getMover) Finish(t *flow.Transfer) { m.finishRead(t) }

// Lost is false: the transport ends gets of a peer that is gone.
func (getMover) Lost() bool { return false }

// Post posts the get of a segment.
func (m getMover) Post(t *flow.Transfer, seg congestion.Segment) (ended, posted bool) {
	e, p, op := m.e, m.path, m.opOf(t)
	r := e.rx
	if p.Err() != nil || op.lost {
		return t.Fail(seg, fi.ECONNRESET)
	}
	local, key, at := r.getPiece(e, op, &p.port.attr, uint64(seg.Offset), uint64(seg.Length))
	n := int64(0)
	for _, s := range local {
		n += int64(s.Len)
	}
	if n < seg.Length {
		t.Trim(&seg, n)
	}
	g := r.startGet(e, op, uint64(n))
	g.flow, g.t, g.segment = m.segmentFlow, t, seg
	status, err := p.Endpoint.(hw.OneSided).GetZcopy(local, at, key, &g.done)
	switch {
	case err == nil && status == hw.InProgress:
		return false, true
	case err == nil:
		r.putGetter(g)
		t.Ended(seg, 0)
		return true, true
	case errors.Is(err, hw.ErrNoResource):
		r.putGetter(g)
		return t.Unpost(seg)
	}
	r.putGetter(g)
	r.getFailed(op, err)
	return t.Fail(seg, op.status)
}

// segmentEnded takes in that the get of a segment has ended.
func (g *getter) segmentEnded(err error) {
	e, n, t, seg, late := g.e, g.flow, g.t, g.segment, g.done.Late
	if err != nil && t.Status == fi.Success {
		op := n.opOf(t)
		e.rx.getFailed(op, err)
		t.Status = op.status
	}
	e.rx.putGetter(g)
	t.Ended(seg, late)
	n.Pump()
}

// copyMover reads the memory of a process of this host.
type copyMover struct{ *segmentFlow }

// Finish has the message come in fragments where the kernel refuses to read.
func (m copyMover) Finish(t *flow.Transfer) {
	if t.Status != fi.EACCES {
		m.finishRead(t)
		return
	}
	op, r := m.opOf(t), m.e.rx
	delete(r.pulls, op.id())
	op.pulled = false
	r.pull(m.e, op)
}

// Lost is false: nothing is in flight between two calls.
func (copyMover) Lost() bool { return false }

// Post copies a segment.
func (m copyMover) Post(t *flow.Transfer, seg congestion.Segment) (ended, posted bool) {
	op, r := m.opOf(t), m.e.rx
	if op.lost {
		return t.Fail(seg, fi.ECONNRESET)
	}
	local, remote := r.piece(op, uint64(seg.Offset), uint64(seg.Length))
	n, err := m.path.Endpoint.(hw.PeerMemory).ReadPeer(local, remote)
	switch {
	case err == nil && int64(n) == seg.Length:
	case errors.Is(err, hw.ErrPermission) && seg.Offset == 0:
		t.Status = fi.EACCES
	default:
		t.Status = outcome.OfRead(err)
		log.Warnf(log.EPData, "read %d bytes of %s: %v", seg.Length, r.addressOf(op.sender()), err)
	}
	t.Ended(seg, 0)
	return true, true
}
