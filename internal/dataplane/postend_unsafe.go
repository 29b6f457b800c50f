package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// The completion of an operation that completes when it is posted.

// place is where such a completion goes: a ring of the endpoint's transmit queue, or nowhere.
type place struct {
	at   uintptr // of the hot.CQ, 0: nowhere. A pointer would need a write barrier.
	ring hot.Ring
}

// completes reports whether an operation writes a completion.
func completes(p *hot.Post, ep *hot.EP) bool {
	return p.Kind&hot.PostInject == 0 && ep.TxCQ != 0 && (ep.Flags&hot.EPTxAlways != 0 || p.Flags&fi.Completion != 0)
}

// find sets e for an operation, to nowhere if the operation writes no completion. A thread writes to the ring of the
// stripe that it prefers.
func (e *place) find(p *hot.Post, ep *hot.EP) {
	e.at = 0
	if completes(p, ep) {
		e.set(p, ep)
	}
}

// set is find of an operation that writes a completion.
func (e *place) set(p *hot.Post, ep *hot.EP) {
	e.at = ep.TxCQ
	q := e.queue()
	e.ring = cqring.SlotsOf(q, stripeRing(q, p.Thread&ep.StripeMask))
}

// queue is the queue, nil if there is none.
func (e *place) queue() *hot.CQ { return (*hot.CQ)(pointer(e.at)) }

// room finds the place, and reports whether the completion has room there now, as one that is not written always has:
// it has none either behind completions of posts that are kept off the rings, one of which may be the thread's.
// Nothing is claimed: another thread may take the room.
func (e *place) room(p *hot.Post, ep *hot.EP) bool {
	e.at = 0
	return !completes(p, ep) || e.vacant(p, ep)
}

// vacant is room of an operation that writes a completion.
func (e *place) vacant(p *hot.Post, ep *hot.EP) bool {
	e.set(p, ep)
	if mpsc.View(&e.ring).HasRoom() && atomic.LoadUint32(&e.queue().PostsKept) == 0 {
		return true
	}
	countPost(p, ep, stats.ThreadNoCQ, 1)
	return false
}

// complete writes the completion of an operation of n bytes to e, and counts it on the hot.Cntr at an address, 0: none.
// If the ring has become full meanwhile, the shim has the runtime write it (hot.TodoComplete).
func (e *place) complete(p *hot.Post, counter uintptr, flags, n uint64) {
	if q := e.queue(); q != nil {
		ring := mpsc.View(&e.ring)
		slot, pos, ok := ring.Claim(0, cqring.Exclusive(q))
		if ok {
			s := (*hot.CQE)(slot)
			s.Context, s.Flags, s.Len, s.Buf, s.Data, s.Tag, s.Src = p.Context, flags, 0, 0, 0, 0, uint64(fi.AddrNotAvail)
			ring.Publish(unsafe.Pointer(s), 0, pos)
			if wakeNeeded(q) {
				p.Todo |= hot.TodoWakeCQ
			}
		} else {
			p.Todo |= hot.TodoComplete
			p.Completion = flags
		}
	}
	if counter != 0 {
		p.Cntr = counter
		p.Todo |= count((*hot.Cntr)(pointer(counter)), n)
	}
}

// stripeRing is the ring of a queue that a transmit stripe writes to.
func stripeRing(q *hot.CQ, stripe uint32) uint32 {
	rings := q.NRings - 1 // of stripes: 0 or a power of two
	if rings == 0 {
		return 0
	}
	return 1 + stripe&(rings-1)
}
