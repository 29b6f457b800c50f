package provider

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
)

// A rendezvous with exposed memory (expose.go) at the receiver: gets, which the
// transport completes in its Progress.

// getter is one get of a rendezvous. It belongs to the lease holder and is used
// again when the get has ended.
type getter struct {
	done  hw.Completion
	e     *Endpoint // that receives
	index uint32    // of the recvOp, with gen
	gen   uint32
	n     uint64 // bytes
	next  *getter
}

// startGet returns a getter for an operation of which one get more is under
// way.
func (r *rxContext) startGet(e *Endpoint, op *recvOp, n uint64) *getter {
	g := r.getters
	if g == nil {
		g = &getter{}
		g.done.Func = func(c *hw.Completion) { g.ended(c.Err()) }
	} else {
		r.getters = g.next
	}
	g.e, g.index, g.gen, g.n, g.next = e, op.index, op.gen, n, nil
	g.done.Expect(1)
	return g
}

func (r *rxContext) putGetter(g *getter) { g.e, g.next, r.getters = nil, r.getters, g }

// ended takes in that a get has ended. The transport calls it under the
// progress lease, or while the endpoint closes, which has dropped the operation
// then.
func (g *getter) ended(err error) {
	e := g.e
	if e.state.Load() == stateClosed {
		return
	}
	r := e.rx
	op := r.ops.At(g.index)
	if op.gen != g.gen {
		return
	}
	op.pending--
	if err == nil {
		op.done += g.n
	} else {
		r.getFailed(op, err)
	}
	r.putGetter(g)
	if op.pulled && op.pending == 0 {
		r.finishOp(e, op)
	}
}

// getFailed notes why an operation fails.
func (r *rxContext) getFailed(op *recvOp, err error) {
	if op.status != fi.Success {
		return
	}
	op.status = readError(err)
	log.Warnf(log.EPData, "read %d bytes of %s: %v", op.want, r.addressOf(op.sender()), err)
}

// stepGet posts the gets of an operation as far as there is room, and tells
// whether progress is done with it: all are posted, or it has ended.
func (r *rxContext) stepGet(e *Endpoint, op *recvOp) bool {
	p, err := e.connect(e.linkBack(op.sender()))
	if err == fi.EAGAIN {
		return false
	}
	if err != nil {
		op.status = fi.ErrnoOf(err)
	}
	for op.status == fi.Success && op.asked < op.want {
		local, key, at := r.getPiece(op)
		n := uint64(0)
		for _, s := range local {
			n += uint64(s.Len)
		}
		g := r.startGet(e, op, n)
		_, err := p.Endpoint.(hw.OneSided).GetZcopy(local, at, key, &g.done)
		if err != nil {
			r.putGetter(g)
		}
		switch {
		case err == nil:
			op.asked += n
			op.pending++
		case errors.Is(err, hw.ErrNoResource):
			return false
		default:
			r.getFailed(op, err)
		}
	}
	if op.pending == 0 {
		r.finishOp(e, op)
		return true
	}
	if !op.pulled {
		op.pulled = true
		r.pulls[op.id()] = op.index
	}
	return true
}

// getPiece returns what the next get reads: the local segments, and where they
// begin in the region of which key.
func (r *rxContext) getPiece(op *recvOp) ([]hw.Segment, hw.RemoteKey, uint64) {
	skip := op.asked
	for _, s := range op.iov[:op.count] {
		if skip >= s.Len {
			skip -= s.Len
			continue
		}
		n := min(s.Len-skip, op.want-op.asked)
		return op.t.segments(r.local[:0], op.asked, n), hw.RemoteKey{s.Addr}, skip
	}
	return nil, hw.RemoteKey{}, 0
}
