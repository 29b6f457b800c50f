package rendezvous

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// A rendezvous with exposed memory (package rkey) at the receiver: gets, which the
// transport completes in its Progress.

// PieceBytes bounds a device's put or get in bytes. A device under which nothing ends for long is taken for broken,
// however much it has moved of one operation; this much moves over any network in time.
const PieceBytes = 256 << 10

// getter is one get. It is used again when the get has ended.
type getter struct {
	done  hw.Completion
	p     *Protocol
	index uint32 // of the operation, with gen
	gen   uint32
	n     uint64 // bytes
	next  *getter

	t       *flow.Transfer // of which it is a segment, or nil
	flow    *Flow          // of t
	segment congestion.Segment
}

// startGet returns a getter for an operation of which one get more is under way.
func (p *Protocol) startGet(op *operation, n uint64) *getter {
	r := p.rx
	g := r.getters
	if g == nil {
		g = &getter{}
		g.done.Func = func(c *hw.Completion) { g.ended(c.Err()) }
	} else {
		r.getters = g.next
	}
	g.p, g.index, g.gen, g.n, g.next = p, op.index, op.gen, n, nil
	g.done.Expect(1)
	return g
}

func (r *Receiver) putGetter(g *getter) {
	g.p, g.t, g.flow, g.next, r.getters = nil, nil, nil, r.getters, g
}

// ended takes in that a get has ended. The transport calls it under the progress lease, or while the endpoint closes,
// which has dropped the operation then.
func (g *getter) ended(err error) {
	p := g.p
	if p.ep.Closed() {
		return
	}
	if g.t != nil {
		g.segmentEnded(err)
		return
	}
	r := p.rx
	op := r.ops.At(g.index)
	if op.gen != g.gen {
		return
	}
	op.pending--
	if err == nil {
		op.done += g.n
	} else {
		p.getFailed(op, err)
	}
	r.putGetter(g)
	if op.waits && op.pending == 0 && op.owed == 0 {
		p.end(op)
	}
}

// getFailed notes why an operation fails.
func (p *Protocol) getFailed(op *operation, err error) {
	if op.status != fi.Success {
		return
	}
	op.status = outcome.OfRead(err)
	log.Warnf(log.EPData, "read %d bytes of %s: %v", op.want, p.ep.SenderOf(&op.Message), err)
}

// stepGet posts the gets of an operation as far as there is room, and says whether progress is done with it: all are
// posted, or it has ended.
func (p *Protocol) stepGet(op *operation) bool {
	if op.lost { // its keys and its number mean nothing to the peer at the end of the path now
		p.getFailed(op, hw.ErrPeerDead)
		return p.allAsked(op)
	}
	path, err := p.ep.Back(&op.Message)
	if errors.Is(err, fi.EAGAIN) {
		return false
	}
	if err != nil {
		op.status = fi.ErrnoOf(err)
	} else if op.asked == 0 && !p.canGet(op, path) {
		op.keyed = false
		p.pull(op)
		return true
	} else if op.asked == 0 && p.ep.Segmented(path.TransportNumber(), op.want) {
		if f := p.ep.Flow(&op.Message, path); f != nil {
			f.start(op, getMover{f})
			return true
		}
	}
	if op.open && op.help == helpNone && op.asked == 0 && op.status == fi.Success {
		p.sendLanding(op, path)
	}
	if op.help != helpNone {
		return p.stepHelped(op, path)
	}
	for op.status == fi.Success && op.asked < op.want {
		if !p.postGet(op, path, op.want-op.asked) {
			return false
		}
	}
	return p.allAsked(op)
}

// errNoPiece is why an operation fails of which the transport's limits, or its sender's keys, leave nothing for a get.
var errNoPiece = fmt.Errorf("rendezvous: a get has no bytes: %w", hw.ErrInvalid)

// postGet posts a get of most bytes at most, and reports false when there is no room.
func (p *Protocol) postGet(op *operation, path Path, most uint64) bool {
	local, key, at := p.getPiece(op, path.Attr(), op.asked, most)
	n := uint64(0)
	for _, s := range local {
		n += uint64(s.Len)
	}
	if n == 0 {
		p.getFailed(op, errNoPiece)
		return true
	}
	g := p.startGet(op, n)
	_, err := path.Transport().(hw.OneSided).GetZcopy(local, at, key, &g.done)
	switch {
	case err == nil:
		op.asked += n
		op.pending++
		return true
	case !errors.Is(err, hw.ErrNoResource):
		p.getFailed(op, err)
	}
	p.rx.putGetter(g)
	return op.status != fi.Success
}

// allAsked ends an operation, or has what is under way end it.
func (p *Protocol) allAsked(op *operation) bool {
	if op.pending == 0 && op.owed == 0 {
		p.end(op)
		return true
	}
	p.rx.wait(op)
	return true
}

// canGet reports whether the path to the sender is one over which gets work, and has the target registered where that
// is needed. Else the message is asked for in fragments.
func (p *Protocol) canGet(op *operation, path Path) bool {
	if !p.ep.CameOver(op.Src, path) {
		return false // the way back to the sender is another, where its keys mean nothing
	}
	if op.landed || op.want == 0 || p.openLanding(op, path) || path.TransportDevice().Cache == nil {
		return true
	}
	regions := make([]hw.Memory, 0, wire.IOVLimit)
	for _, s := range op.Target.Segments(p.rx.local[:0], 0, op.want) {
		m, err := path.TransportDevice().Register(uint64(uintptr(s.Addr)), s.Len, hw.LocalWrite)
		if err != nil {
			log.Infof(log.EPData, "a message of %d bytes comes in fragments: %v", op.want, err)
			rkey.Close(regions)
			return false
		}
		regions = append(regions, m)
	}
	p.landings.put(op, regions)
	return true
}

// landings are the regions of targets, by operation.id.
type landings map[uint64][]hw.Memory

// put keeps the regions of an operation's target until drop takes them back.
func (l *landings) put(op *operation, regions []hw.Memory) {
	if *l == nil {
		*l = landings{}
	}
	(*l)[op.id()], op.landed = regions, true
}

// drop takes the regions of an operation's target back.
func (l landings) drop(op *operation) {
	rkey.Close(l[op.id()])
	delete(l, op.id())
	op.landed = false
}

// at is the registration of a piece of an operation's target.
func (l landings) at(op *operation, s hw.Segment) hw.Memory {
	return rkey.Covering(l[op.id()], uintptr(s.Addr), uint64(s.Len))
}

// getPiece returns what a get reads that begins at byte from of the message and takes most bytes at most: the local
// segments, and where they begin in the region of which key.
func (p *Protocol) getPiece(op *operation, a *hw.Attr, from, most uint64) ([]hw.Segment, hw.RemoteKey, uint64) {
	skip := from
	for i, s := range op.iov[:op.count] {
		if skip >= s.Len {
			skip -= s.Len
			continue
		}
		n := min(s.Len-skip, most, a.MaxGetZcopy)
		if op.landed {
			n = min(n, PieceBytes)
		}
		local := op.Target.Segments(p.rx.local[:0], from, n)
		local = local[:min(len(local), a.MaxIOV)]
		if op.landed {
			for k := range local {
				local[k].Memory = p.landings.at(op, local[k])
			}
		}
		return local, op.keys[i], s.Addr + skip
	}
	return nil, hw.RemoteKey{}, 0
}
