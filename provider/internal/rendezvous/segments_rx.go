package rendezvous

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/outcome"
)

// Reads in segments.

// Flow is the flow of the reads over one path.
type Flow struct {
	*flow.Flow
	path Path
	p    *Protocol
}

// NewFlow returns the flow of reads over a path, whose segments are under the windows of f.
func (p *Protocol) NewFlow(f *flow.Flow, path Path) *Flow { return &Flow{f, path, p} }

// start begins to read an operation's payload in segments.
func (f *Flow) start(op *operation, m flow.Mover) {
	f.p.rx.wait(op)
	t := f.Transfer(op.id(), m)
	t.Grain = flow.Grain(f.path.Transport(), true)
	f.Begin(t, op.want)
}

// opOf is the operation of a transfer.
func (f *Flow) opOf(t *flow.Transfer) *operation { return f.p.rx.ops.At(uint32(t.ID)) }

// end ends the operation of a transfer.
func (f *Flow) end(t *flow.Transfer) {
	op := f.opOf(t)
	op.done = uint64(t.Done())
	op.status = t.Status
	f.p.end(op)
}

// getMover reads by gets, which the transport completes.
type getMover struct{ *Flow }

// End ends the read.
func (m getMover) End(t *flow.Transfer) { m.end(t) }

// Lost is false: the transport ends gets of a peer that is gone.
func (getMover) Lost() bool { return false }

// Post posts the get of a segment.
func (m getMover) Post(t *flow.Transfer, seg congestion.Segment) (ended, posted bool) {
	p, path, op := m.p, m.path, m.opOf(t)
	r := p.rx
	if path.Err() != nil || op.lost {
		return t.Fail(seg, fi.ECONNRESET)
	}
	local, key, at := p.getPiece(op, path.Attr(), uint64(seg.Offset), uint64(seg.Length))
	n := int64(0)
	for _, s := range local {
		n += int64(s.Len)
	}
	if n == 0 {
		p.getFailed(op, errNoPiece)
		return t.Fail(seg, op.status)
	}
	if n < seg.Length {
		t.Trim(&seg, n)
	}
	g := p.startGet(op, uint64(n))
	g.flow, g.t, g.segment = m.Flow, t, seg
	status, err := path.Transport().(hw.OneSided).GetZcopy(local, at, key, &g.done)
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
	p.getFailed(op, err)
	return t.Fail(seg, op.status)
}

// segmentEnded takes in that the get of a segment has ended.
func (g *getter) segmentEnded(err error) {
	p, f, t, seg, late := g.p, g.flow, g.t, g.segment, g.done.Late
	if err != nil && t.Status == fi.Success {
		op := f.opOf(t)
		p.getFailed(op, err)
		t.Status = op.status
	}
	p.rx.putGetter(g)
	t.Ended(seg, late)
	f.Pump()
}

// copyMover reads the memory of a process of this host.
type copyMover struct{ *Flow }

// End has the message come in fragments where the kernel refuses to read.
func (m copyMover) End(t *flow.Transfer) {
	if t.Status != fi.EACCES {
		m.end(t)
		return
	}
	op := m.opOf(t)
	delete(m.p.rx.waiting, op.id())
	op.waits = false
	m.p.pull(op)
}

// Lost is false: nothing is in flight between two calls.
func (copyMover) Lost() bool { return false }

// Post copies a segment.
func (m copyMover) Post(t *flow.Transfer, seg congestion.Segment) (ended, posted bool) {
	p, op := m.p, m.opOf(t)
	if op.lost {
		return t.Fail(seg, fi.ECONNRESET)
	}
	local, remote := p.rx.piece(op, uint64(seg.Offset), uint64(seg.Length))
	n, err := m.path.Transport().(hw.PeerMemory).ReadPeer(local, remote)
	switch {
	case err == nil && int64(n) == seg.Length:
	case errors.Is(err, hw.ErrPermission) && seg.Offset == 0:
		t.Status = fi.EACCES
	default:
		t.Status = outcome.OfRead(err)
		log.Warnf(log.EPData, "read %d bytes of %s: %v", seg.Length, p.ep.SenderOf(&op.Message), err)
	}
	t.Ended(seg, 0)
	return true, true
}
