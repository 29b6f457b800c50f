package dataplane

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hot"
	"github.com/weft-fabric/weft/internal/stats"
)

// place is where the completion of an operation goes that completes when it is posted.
type place struct {
	at   uintptr // of the hot.CQ, 0: nowhere. A pointer would need a write barrier.
	ring uint32  // of its rings
}

// queue is the queue, nil if there is none.
func (e place) queue() *hot.CQ { return (*hot.CQ)(pointer(e.at)) }

// find returns that place. A thread writes to the ring of the stripe that it prefers.
func find(p *hot.Post, ep *hot.EP) place {
	if p.Kind&hot.PostInject != 0 || ep.TxCQ == 0 || ep.Flags&hot.EPTxAlways == 0 && p.Flags&fi.Completion == 0 {
		return place{}
	}
	return place{at: ep.TxCQ, ring: stripeRing((*hot.CQ)(pointer(ep.TxCQ)), p.Thread&ep.StripeMask)}
}

// room returns that place, and tells whether there is room.
func room(p *hot.Post, ep *hot.EP) (e place, ok bool) {
	e = find(p, ep)
	if e.at == 0 || queueRing(e.queue(), e.ring).HasRoom() {
		return e, true
	}
	countPost(p, ep, stats.ThreadNoCQ, 1)
	return e, false
}

// complete completes an operation of n bytes there, and counts it on the counter at an address, 0: none.
func complete(p *hot.Post, e place, counter uintptr, flags, n uint64) {
	if q := e.queue(); q != nil {
		ring := queueRing(q, e.ring)
		slot, pos, ok := ring.Claim(0, q.Flags&hot.CQExclusive != 0)
		if ok {
			s := (*hot.CQE)(slot)
			s.Context, s.Flags, s.Src = p.Context, flags, uint64(fi.AddrNotAvail)
			*(*[4]uint64)(unsafe.Pointer(&s.Len)) = [4]uint64{} // to Tag, in two stores
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
