package provider

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/flow"
	"github.com/weft-fabric/weft/provider/outcome"
	"github.com/weft-fabric/weft/provider/rkey"
	"github.com/weft-fabric/weft/provider/wire"
)

// A rendezvous with exposed memory (package rkey) at the receiver: gets, which the
// transport completes in its Progress.

// getter is one get of a rendezvous. It belongs to the lease holder and is used
// again when the get has ended.
type getter struct {
	done  hw.Completion
	e     *leasedEP // that receives
	index uint32    // of the recvOp, with gen
	gen   uint32
	n     uint64 // bytes
	next  *getter

	t       *flow.Transfer // of which it is a segment, or nil
	flow    *segmentFlow   // of t
	segment congestion.Segment
}

// startGet returns a getter for an operation of which one get more is under
// way.
func (r *leasedRx) startGet(e *leasedEP, op *recvOp, n uint64) *getter {
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

func (r *leasedRx) putGetter(g *getter) {
	g.e, g.t, g.flow, g.next, r.getters = nil, nil, nil, r.getters, g
}

// ended takes in that a get has ended. The transport calls it under the
// progress lease, or while the endpoint closes, which has dropped the operation
// then.
func (g *getter) ended(err error) {
	e := g.e
	if e.state.Load() == stateClosed {
		return
	}
	if g.t != nil {
		g.segmentEnded(err)
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
	if op.pulled && op.pending == 0 && op.owed == 0 {
		r.finishOp(e, op)
	}
}

// getFailed notes why an operation fails.
func (r *receiving) getFailed(op *recvOp, err error) {
	if op.status != fi.Success {
		return
	}
	op.status = outcome.OfRead(err)
	log.Warnf(log.EPData, "read %d bytes of %s: %v", op.want, r.addressOf(op.sender()), err)
}

// stepGet posts the gets of an operation as far as there is room, and says
// whether progress is done with it: all are posted, or it has ended.
func (r *leasedRx) stepGet(e *leasedEP, op *recvOp) bool {
	if op.lost { // its keys and its number mean nothing to the peer at the end of the path now
		r.getFailed(op, hw.ErrPeerDead)
		return r.allAsked(e, op)
	}
	p, err := e.connectBack(hw.Source(op.src), op.sender())
	if err == fi.EAGAIN {
		return false
	}
	if err != nil {
		op.status = fi.ErrnoOf(err)
	} else if op.asked == 0 && !r.canGet(e, op, p) {
		op.keyed = false
		r.pull(e, op)
		return true
	} else if op.asked == 0 && e.segmented(p.port, op.want) {
		if n := e.flowOf(e.linkBack(op.sender()), p); n != nil {
			r.startSegmented(op, n, getMover{n})
			return true
		}
	}
	if op.open && op.help == helpNone && op.asked == 0 && op.status == fi.Success {
		r.sendLanding(e, op, p)
	}
	if op.help != helpNone {
		return r.stepHelped(e, op, p)
	}
	for op.status == fi.Success && op.asked < op.want {
		if !r.postGet(e, op, p, op.want-op.asked) {
			return false
		}
	}
	return r.allAsked(e, op)
}

// postGet posts a get of most bytes at most, and reports false when there is no room.
func (r *leasedRx) postGet(e *leasedEP, op *recvOp, p *path, most uint64) bool {
	local, key, at := r.getPiece(e, op, &p.port.attr, op.asked, most)
	n := uint64(0)
	for _, s := range local {
		n += uint64(s.Len)
	}
	g := r.startGet(e, op, n)
	_, err := p.Endpoint.(hw.OneSided).GetZcopy(local, at, key, &g.done)
	switch {
	case err == nil:
		op.asked += n
		op.pending++
		return true
	case !errors.Is(err, hw.ErrNoResource):
		r.getFailed(op, err)
	}
	r.putGetter(g)
	return op.status != fi.Success
}

// allAsked ends an operation, or has what is under way end it.
func (r *leasedRx) allAsked(e *leasedEP, op *recvOp) bool {
	if op.pending == 0 && op.owed == 0 {
		r.finishOp(e, op)
		return true
	}
	op.pulled = true
	r.pulls[op.id()] = op.index
	return true
}

// canGet reports whether the path to the sender is one over which gets work, and
// has the target registered where that is needed. Else the message is asked for
// in fragments.
func (r *leasedRx) canGet(e *leasedEP, op *recvOp, p *path) bool {
	if p.port.number != op.src>>sourcePortShift {
		return false // the way back to the sender is another, where its keys mean nothing
	}
	if op.landed || op.want == 0 || r.openLanding(e, op, p.port) || p.port.cache == nil {
		return true
	}
	regions := make([]hw.Memory, 0, wire.IOVLimit)
	for _, s := range op.t.segments(r.local[:0], 0, op.want) {
		m, err := p.port.device().Register(uint64(uintptr(s.Addr)), s.Len, hw.LocalWrite)
		if err != nil {
			log.Infof(log.EPData, "a message of %d bytes comes in fragments: %v", op.want, err)
			rkey.Close(regions)
			return false
		}
		regions = append(regions, m)
	}
	e.landings.put(op, regions)
	return true
}

// landings are the regions of targets of rendezvous, by recvOp.id.
type landings map[uint64][]hw.Memory

// put keeps the regions of an operation's target until drop takes them back.
func (l *landings) put(op *recvOp, regions []hw.Memory) {
	if *l == nil {
		*l = landings{}
	}
	(*l)[op.id()], op.landed = regions, true
}

// drop takes the regions of an operation's target back.
func (l landings) drop(op *recvOp) {
	rkey.Close(l[op.id()])
	delete(l, op.id())
	op.landed = false
}

// dropRegions takes back what was registered for transfers that an endpoint
// which is closed leaves unfinished.
func (e *leasedEP) dropRegions() {
	for _, regions := range e.landings {
		rkey.Close(regions)
	}
	e.landings = nil
	rkey.Close(e.exposed.Clear())
	e.devices.leave()
	e.lists.Unregister()
	for _, t := range e.transfers {
		if m, ok := t.Mover.(*deviceMover); ok {
			m.op.leave()
		}
	}
}

// at is the registration of a piece of an operation's target.
func (l landings) at(op *recvOp, s hw.Segment) hw.Memory {
	return rkey.Covering(l[op.id()], uintptr(s.Addr), uint64(s.Len))
}

// devicePieceBytes bounds a device's put or get in bytes. A device under which nothing ends
// for long is taken for broken, however much it has moved of one operation; this
// much moves over any network in time.
const devicePieceBytes = 256 << 10

// getPiece returns what a get reads that begins at byte from of the message and
// takes most bytes at most: the local segments, and where they begin in the
// region of which key.
func (r *leasedRx) getPiece(
	e *leasedEP, op *recvOp, a *hw.Attr, from, most uint64,
) ([]hw.Segment, hw.RemoteKey, uint64) {
	skip := from
	for i, s := range op.iov[:op.count] {
		if skip >= s.Len {
			skip -= s.Len
			continue
		}
		n := min(s.Len-skip, most, a.MaxGetZcopy)
		if op.landed {
			n = min(n, devicePieceBytes)
		}
		local := op.t.segments(r.local[:0], from, n)
		local = local[:min(len(local), a.MaxIOV)]
		if op.landed {
			for k := range local {
				local[k].Memory = e.landings.at(op, local[k])
			}
		}
		return local, op.keys[i], s.Addr + skip
	}
	return nil, hw.RemoteKey{}, 0
}
