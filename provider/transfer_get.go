package provider

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
)

// Reads of announced messages in segments.

// startSegmented begins to read an operation's payload over p in segments.
func (r *leasedRx) startSegmented(e *leasedEP, op *recvOp, n *segmentFlow, m mover) {
	op.pulled = true
	r.pulls[op.id()] = op.index
	t := e.newTransfer(op.id(), m)
	t.Grain = n.grain(true)
	n.start(t, op.want)
}

// opOf is the operation of a transfer that reads.
func (t *transfer) opOf() *recvOp { return t.e.rx.ops.At(uint32(t.id)) }

// finishRead ends the operation of a transfer that reads.
func (t *transfer) finishRead() {
	op := t.opOf()
	op.done = uint64(t.Done())
	op.status = t.status
	t.e.rx.finishOp(t.e, op)
}

// getMover reads by gets, which the transport completes.
type getMover struct{}

func (getMover) finish(t *transfer) { t.finishRead() }

func (getMover) lost() bool { return false }

func (getMover) post(t *transfer, seg congestion.Segment) (ended, posted bool) {
	e, p, op := t.e, t.flow.path, t.opOf()
	r := e.rx
	if p.Err() != nil {
		return t.fail(seg, fi.ECONNRESET)
	}
	local, key, at := r.getPiece(e, op, &p.port.attr, uint64(seg.Offset), uint64(seg.Length))
	n := int64(0)
	for _, s := range local {
		n += int64(s.Len)
	}
	if n < seg.Length {
		t.flow.Trim(&t.Operation, &seg, n)
	}
	g := r.startGet(e, op, uint64(n))
	g.t, g.segment = t, seg
	status, err := p.Endpoint.(hw.OneSided).GetZcopy(local, at, key, &g.done)
	switch {
	case err == nil && status == hw.InProgress:
		return false, true
	case err == nil:
		r.putGetter(g)
		t.ended(seg, 0)
		return true, true
	case errors.Is(err, hw.ErrNoResource):
		r.putGetter(g)
		return t.unpost(seg)
	}
	r.putGetter(g)
	r.getFailed(op, err)
	return t.fail(seg, op.status)
}

// segmentEnded takes in that the get of a segment has ended.
func (g *getter) segmentEnded(err error) {
	e, t, seg, late := g.e, g.t, g.segment, g.done.Late
	n := t.flow
	if err != nil && t.status == fi.Success {
		op := t.opOf()
		e.rx.getFailed(op, err)
		t.status = op.status
	}
	e.rx.putGetter(g)
	t.ended(seg, late)
	n.pump(e)
}

// copyMover reads the memory of a process of this host.
type copyMover struct{}

// finish has the message come in fragments where the kernel refuses to read.
func (copyMover) finish(t *transfer) {
	if t.status != fi.EACCES {
		t.finishRead()
		return
	}
	op, r := t.opOf(), t.e.rx
	delete(r.pulls, op.id())
	op.pulled, op.whole = false, true
	r.pull(t.e, op)
}

func (copyMover) lost() bool { return false }

func (copyMover) post(t *transfer, seg congestion.Segment) (ended, posted bool) {
	e, op := t.e, t.opOf()
	r := e.rx
	local, remote := r.piece(op, uint64(seg.Offset), uint64(seg.Length))
	n, err := t.flow.path.Endpoint.(hw.PeerMemory).ReadPeer(local, remote)
	switch {
	case err == nil && int64(n) == seg.Length:
	case errors.Is(err, hw.ErrPermission) && seg.Offset == 0:
		t.status = fi.EACCES
	default:
		t.status = readError(err)
		log.Warnf(log.EPData, "read %d bytes of %s: %v", seg.Length, r.addressOf(op.sender()), err)
	}
	t.ended(seg, 0)
	return true, true
}
