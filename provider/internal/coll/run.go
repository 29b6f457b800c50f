package coll

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// collOp is an operation under way, and the transport of its steps. It belongs
// to the thread that posts it, then to the lease holder.
type collOp struct {
	group     *Group
	c         *Protocol // from its start on
	next      *collOp   // free
	run       collective.Run
	kind      collective.Kind
	seq       uint32
	context   uint64
	completes bool
	advancing bool // Advance is under way
	status    fi.Errno
	refused   fi.Errno    // why it cannot begin at this member; fi.Success: it can
	recvs     []*collStep // that wait for a message, in order
	scratch   []byte
	exchange  *collExchange // nil: it goes by a plan
	kept      *keptMemory   // of its request, nil: it has none
	mapped    []byte        // memory of scratch
	arrivals  arrivals

	// The arithmetic of the last call that had one.
	fold     func(dst, a, b []byte)
	datatype fi.Datatype
	op       fi.Op
}

// runs are a group's operations, by number.
type runs struct {
	next uint32 // of the next operation to be posted; under Groups.mu

	// The lease holder's.
	started uint32              // number of the next operation to begin
	under   map[uint32]*collOp  // under way
	doomed  map[uint32]fi.Errno // operations that failed elsewhere before they began here
}

// collStep is a transfer that has not ended.
type collStep struct {
	next *collStep // free, or behind it in a member's queue
	op   *collOp
	peer int
	data []byte
	id   uint64 // by which the peer names it, once it was sent in an RTS or asked for
	done uint64 // bytes sent or received

	exposed bool            // of a send: the peer may read data until it has answered
	faulted congestion.Time // of a receive: when the payload was found to be there no more; 0: it was not

	// of a receive, where the payload is
	request uint64
	addr    uint64
	peerOp  uint64 // of a send in fragments, the receiver's number
}

// newStep takes a step from the free ones.
func (c *Protocol) newStep(o *collOp, peer int, data []byte) *collStep {
	s := c.steps
	if s == nil {
		s = &collStep{}
	} else {
		c.steps = s.next
	}
	*s = collStep{op: o, peer: peer, data: data}
	return s
}

func (c *Protocol) freeStep(s *collStep) {
	*s = collStep{next: c.steps}
	c.steps = s
}

// start begins an operation.
func (c *Protocol) start(o *collOp) {
	g := o.group
	o.c = c
	g.runs.started = o.seq + 1
	g.runs.under[o.seq] = o
	if why, ok := g.runs.doomed[o.seq]; ok {
		delete(g.runs.doomed, o.seq)
		c.fail(o, why)
		return
	}
	if o.refused != fi.Success {
		c.fail(o, o.refused)
		return
	}
	if o.exchange != nil {
		c.ordered.begin(o)
		return
	}
	c.advance(o)
}

// advance does what can be done of an operation.
func (c *Protocol) advance(o *collOp) {
	o.advancing = true
	over := o.run.Advance(o)
	o.advancing = false
	if over || o.status != fi.Success {
		c.end(o)
	}
}

// received takes in that all bytes of a receive are in place, and frees its step.
func (c *Protocol) received(s *collStep) {
	if len(s.data) != 0 {
		s.op.arrivals.arrived()
	}
	c.freeStep(s)
}

// ended takes in that a transfer of an operation has ended.
func (c *Protocol) ended(s *collStep) {
	o := s.op
	c.freeStep(s)
	c.transferred(o)
}

// transferred is ended for a step that is gone already.
func (c *Protocol) transferred(o *collOp) {
	o.run.Ended()
	if o.run.Open() == 0 {
		c.advance(o)
	}
}

// end ends an operation: now, or if it has failed, when no member reads its memory any more, nor a put of its own.
func (c *Protocol) end(o *collOp) {
	delete(o.group.runs.under, o.seq)
	if o.status != fi.Success {
		c.ordered.withdraw(o)
		if c.abandon(o); c.long.exposes(o) || o.exchange != nil && o.exchange.flying != 0 {
			return
		}
	}
	c.settle(o)
}

// settle completes an operation that has ended.
func (c *Protocol) settle(o *collOp) {
	c.ordered.withdraw(o)
	if o.exchange != nil {
		o.exchange.leave()
	}
	c.unkeep(o)
	o.arrivals.end()
	c.ep.Complete(o.context, o.completes, o.status)
	c.ordered.drop(o)
	c.recycle(o)
}

// head is what messages of the operation begin with.
func (o *collOp) head() wire.CollStep {
	return wire.CollStep{Seq: o.seq, Kind: o.kind, Rank: uint32(o.group.rank)}
}

// Send begins to send data to a rank (collective.Transport).
func (o *collOp) Send(to int, data []byte) bool {
	if o.status != fi.Success {
		return true
	}
	c, m := o.c, &o.group.members[to]
	s := c.newStep(o, to, data)
	if m.queue != nil {
		m.last.next, m.last = s, s
		return false
	}
	sent, err := c.send(m, s)
	if errors.Is(err, fi.EAGAIN) {
		m.queue, m.last = s, s
		if !m.blocked {
			m.blocked = true
			c.blocked = append(c.blocked, m)
		}
		return false
	}
	if err != nil {
		c.freeStep(s)
		c.fail(o, fi.ErrnoOf(err))
		return true
	}
	if sent {
		c.freeStep(s)
	}
	return sent
}

// send sends a step's message, and reports whether its payload went with it.
func (c *Protocol) send(m *collMember, s *collStep) (sent bool, err error) {
	if m.dead {
		return false, fi.ECONNRESET
	}
	o := s.op
	p, err := m.peer.Connect()
	if err != nil {
		return false, err
	}
	over, n := p.Over(), len(s.data)
	over.Notify()
	if uint64(n) <= over.Eager && p.EagerOpen() {
		h := o.head()
		return true, c.ep.Post(p, wire.AMCollStep, m.id, h.Put(c.head[:]), s.data)
	}
	h := wire.CollLong{CollStep: o.head(), Request: c.long.number(), Length: uint64(n),
		Addr: mem.Address(s.data)}
	if err := c.ep.Post(p, wire.AMCollRTS, m.id, h.Put(c.head[:]), nil); err != nil {
		return false, err
	}
	s.id, s.exposed = h.Request, over.Caps&hw.CapPeerMemory != 0
	c.long.sends[s.id] = s
	return false, nil
}

// pumpBlocked sends what waited for room, each member's in order.
func (c *Protocol) pumpBlocked() {
	list := c.blocked
	c.blocked = nil
	kept := list[:0]
	for _, m := range list {
		for m.queue != nil {
			s := m.queue
			sent, err := c.send(m, s)
			if errors.Is(err, fi.EAGAIN) {
				break
			}
			m.queue = s.next
			s.next = nil
			switch {
			case err != nil:
				o := s.op
				c.freeStep(s)
				c.fail(o, fi.ErrnoOf(err))
			case sent:
				c.ended(s)
			}
		}
		if m.blocked = m.queue != nil; m.blocked {
			kept = append(kept, m)
		}
	}
	c.blocked = append(kept, c.blocked...)
}

// Recv begins to receive data from a rank (collective.Transport).
func (o *collOp) Recv(from int, data []byte) bool {
	if o.status != fi.Success {
		return true
	}
	c, m := o.c, &o.group.members[from]
	h := m.takeEarly(o.seq)
	if (h == nil || h.kind == earlyRTS) && (m.left || m.gone) { // nothing comes any more, nor what an RTS names
		if h != nil {
			c.freeEarly(h)
		}
		c.fail(o, fi.ECONNRESET)
		return true
	}
	s := c.newStep(o, from, data)
	if h == nil {
		o.recvs = append(o.recvs, s)
		return false
	}
	defer c.freeEarly(h)
	if h.kind.ordered() {
		c.unlike(o, &h.head.CollStep)
		c.freeStep(s)
		return true
	}
	if !o.agrees(&h.head.CollStep, h.head.Length, s) {
		if h.kind == earlyRTS {
			c.long.refuse(m, h.head.Request, o.status)
		}
		c.freeStep(s)
		return true
	}
	if h.kind == earlyRTS {
		return c.long.fetch(m, s, &h.head) != fetchPending
	}
	if len(data) != 0 {
		copy(data, mem.Bytes(h.payload, h.head.Length))
	}
	c.received(s)
	return true
}

// agrees reports whether a message is what a receive waits for. If not, the
// operation fails: its members were called with different arguments.
func (o *collOp) agrees(h *wire.CollStep, length uint64, s *collStep) bool {
	switch {
	case h.Kind != o.kind:
		o.group.warn("operation %d is of kind %d here and %d at rank %d", o.seq, o.kind, h.Kind, s.peer)
		o.c.fail(o, fi.EINVAL)
		return false
	case length != uint64(len(s.data)):
		o.group.warn("operation %d: rank %d sends %d bytes, expected %d", o.seq, s.peer, length, len(s.data))
		o.c.fail(o, fi.ETRUNC)
		return false
	}
	return true
}

// waiting takes the first receive from a rank that waits for a message.
func (o *collOp) waiting(rank int) *collStep {
	for i, s := range o.recvs {
		if s.peer == rank {
			copy(o.recvs[i:], o.recvs[i+1:])
			o.recvs[len(o.recvs)-1] = nil
			o.recvs = o.recvs[:len(o.recvs)-1]
			return s
		}
	}
	return nil
}

// over reports whether an operation that is not under way is past.
func (r *runs) over(seq uint32) bool { return int32(seq-r.started) < 0 }

// onStep is a step's payload.
func (c *Protocol) onStep(src hw.Source, id uint64, head, payload []byte) {
	if len(head) == wire.CollChunkBytes {
		c.ordered.onChunk(src, id, head, payload)
		return
	}
	if len(head) == wire.CollPieceBytes {
		c.ordered.onPiece(src, id, head, payload)
		return
	}
	if len(head) == wire.CollRefusalBytes {
		c.ordered.onRefusal(src, id, head, payload)
		return
	}
	if len(head) == wire.CollPutBytes {
		c.ordered.onPut(src, id, head, payload)
		return
	}
	var h wire.CollStep
	if !h.Parse(head, wire.CollStepBytes) {
		c.malformed(src, "step of %d bytes does not parse", len(head))
		return
	}
	g, m := c.member(src, id, h.Rank, "step")
	if m == nil {
		return
	}
	o := g.runs.under[h.Seq]
	if o == nil {
		if !g.runs.over(h.Seq) {
			c.holdStep(g, m, &earlyStep{head: wire.CollLong{CollStep: h, Length: uint64(len(payload))}}, payload)
		}
		return // of an operation that has failed here
	}
	if o.exchange != nil {
		c.unlike(o, &h)
		return
	}
	s := o.waiting(int(h.Rank))
	if s == nil {
		c.holdStep(g, m, &earlyStep{head: wire.CollLong{CollStep: h, Length: uint64(len(payload))}}, payload)
		return
	}
	if !o.agrees(&h, uint64(len(payload)), s) {
		c.freeStep(s)
		return
	}
	copy(s.data, payload)
	c.received(s)
	c.transferred(o)
}
