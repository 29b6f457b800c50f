package coll

import (
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// An operation that cannot go on at one member fails at all: a member that fails it sends a note to the others, and
// so does each that gets its first note, so that no member waits for one that does not go on either, even if the
// first sender dies. A member that is gone or has left fails only what needs more of it: it may have done its part.
// Such a note says, too, that its sender reads no more of what it was offered for the operation.

// fail ends an operation with an error, now or when Advance returns.
func (c *Protocol) fail(o *collOp, why fi.Errno) {
	if o.status != fi.Success {
		return
	}
	o.status = why
	g := o.group
	g.warn("operation %d: %v", o.seq, why)
	h := wire.CollNote{Seq: o.seq, Status: why}
	for i := range g.members {
		if m := &g.members[i]; !m.left && !m.gone {
			c.control(m, wire.AMCollNote, m.id, h.Put(c.head[:]))
		}
	}
	if !o.advancing {
		c.end(o)
	}
}

// Fail takes the place of an operation of the group that this member cannot begin, as the others wait for it
// otherwise: the operation fails with why at all members that have not completed it, and completes so with the context
// here. Errors: fi.EINVAL for why below 1, and fi.EOPBADSTATE, fi.EINVAL, fi.EAGAIN and fi.ENOMEM as of
// Endpoint.Collective.
func (g *Group) Fail(why fi.Errno, context uint64) error {
	if why < 1 {
		return log.Reject(log.EPData, fi.EINVAL, "fail a collective operation: errno %d", int(why))
	}
	if !g.c.host.Enabled() {
		return fi.EOPBADSTATE
	}
	if err := g.c.postRefused(g.Addr(), why, context); err != nil {
		return err
	}
	g.c.host.Notify()
	return nil
}

// postRefused leaves an operation to progress that fails when it begins.
func (c *Groups) postRefused(group fi.Addr, why fi.Errno, context uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.ready(group)
	if err != nil {
		return err
	}
	o, err := c.take(&collective.Plan{})
	if err != nil {
		return err
	}
	c.enqueue(g, o, collective.Barrier, fi.Completion, context)
	o.refused = why
	return nil
}

// abandon drops the transfers of an operation.
func (c *Protocol) abandon(o *collOp) {
	g := o.group
	for _, s := range o.recvs {
		c.freeStep(s)
	}
	clear(o.recvs)
	o.recvs = o.recvs[:0]
	c.long.dropOf(o)
	for i := range g.members {
		g.members[i].drop(c, o)
	}
}

// drop drops what an operation has to send to a member, and what came from the
// member for it.
func (m *collMember) drop(c *Protocol, o *collOp) {
	var last *collStep
	at := &m.queue
	for *at != nil {
		s := *at
		if s.op != o {
			last, at = s, &s.next
			continue
		}
		*at = s.next
		c.freeStep(s)
	}
	m.last = last
	m.dropAhead(c, o.seq, o.status)
}

// dropAhead drops what came from the member for an operation that fails.
func (m *collMember) dropAhead(c *Protocol, seq uint32, why fi.Errno) {
	for h := m.takeEarly(seq); h != nil; h = m.takeEarly(seq) {
		if h.kind == earlyRTS {
			c.long.refuse(m, h.head.Request, why)
		}
		c.freeEarly(h)
	}
}

// maxDoomed bounds the operations that a group remembers to have failed before
// they began.
const maxDoomed = 1 << 16

// doom fails an operation that need not have begun here.
func (c *Protocol) doom(g *Group, seq uint32, why fi.Errno) {
	if o := g.runs.under[seq]; o != nil {
		c.fail(o, why)
	} else if !g.runs.over(seq) && len(g.runs.doomed) < maxDoomed {
		g.runs.doomed[seq] = why
		for i := range g.members {
			g.members[i].dropAhead(c, seq, why)
		}
	}
}

// onNote is a member's word that an operation has failed, or that it has left.
func (c *Protocol) onNote(src hw.Source, id uint64, head, payload []byte) {
	if len(head) == wire.CollWordBytes {
		c.ordered.onWord(src, id, head)
		return
	}
	if len(head) == wire.CollRelayBytes {
		c.ordered.onRelayNote(src, id, head)
		return
	}
	var h wire.CollNote
	if !h.Parse(head) {
		c.malformed(src, "note of %d bytes does not parse", len(head))
		return
	}
	if h.Taken {
		c.joins.onTaken(src, id, h.Group)
		return
	}
	if g := c.group(id); id != 0 && g != nil {
		for i := range g.members {
			m := &g.members[i]
			switch {
			case !m.joined || m.gone || m.src != src || m.peer == nil:
			case h.Status != fi.Success:
				c.doom(g, h.Seq, h.Status)
				c.long.takeBackWhere(g, func(s *collStep) bool {
					return s.peer == i && s.op.seq == h.Seq
				})
				return
			case h.Group == m.id:
				c.joins.left(g, m, h.Withdrawn)
				return
			}
		}
	}
	if h.Status == fi.Success {
		c.joins.leftEarly(src, h.Group, h.Withdrawn)
	}
}

// starve fails the operations that wait for a message, or the memory, of a member that sends
// nothing more.
func (c *Protocol) starve(g *Group, m *collMember) {
	rank := g.number(m)
	peer := g.peerOf(rank)
	c.failWhere(g, func(o *collOp) bool {
		if o.exchange != nil && o.exchange.engine.Needs(peer) {
			return true
		}
		for _, s := range o.recvs {
			if &g.members[s.peer] == m {
				return true
			}
		}
		return c.long.receivesFrom(o, rank)
	})
	c.long.takeBackWhere(g, func(s *collStep) bool { return s.peer == rank })
	c.ordered.relayGone(g, peer)
}

// number is a member's rank.
func (g *Group) number(m *collMember) int {
	for i := range g.members {
		if &g.members[i] == m {
			return i
		}
	}
	return -1 // of another group
}

// failWhere fails the operations of a group for which hit is true.
func (c *Protocol) failWhere(g *Group, hit func(o *collOp) bool) {
	var list []*collOp
	for _, o := range g.runs.under {
		if hit(o) {
			list = append(list, o)
		}
	}
	for _, o := range list {
		c.fail(o, fi.ECONNRESET)
	}
}

// SourceLost is called when a source is gone, after its last message.
func (c *Protocol) SourceLost(src hw.Source) {
	c.joins.early = slices.DeleteFunc(c.joins.early, func(j earlyJoin) bool { return j.src == src })
	for _, g := range c.groups {
		if g == nil {
			continue
		}
		for i := range g.members {
			m := &g.members[i]
			if !m.joined || m.gone || m.peer == nil || m.src != src {
				continue
			}
			if g.state.Load() == groupJoining && !m.notified {
				g.unjoin(c, m) // the word of another in its place may come
				continue
			}
			m.gone = true
			g.without(c, m)
			c.starve(g, m)
		}
	}
	if len(c.joins.list) != 0 {
		c.joins.pump() // without those that have failed
	}
}

// PeerLost handles that the peer of a link, of that number, cannot be sent to any more.
func (c *Protocol) PeerLost(number uint32, _ fi.Errno) {
	for _, g := range c.groups {
		if g == nil {
			continue
		}
		for i := range g.members {
			m := &g.members[i]
			if m.peer == nil || m.peer.Number() != number || m.dead {
				continue
			}
			if g.state.Load() == groupJoining && !m.notified {
				g.mayEnd(c)
				continue // nothing was sent to it: Connect says what becomes of the join
			}
			m.dead = true
			g.without(c, m)
			c.failWhere(g, func(o *collOp) bool { return o.sendsTo(i) })
			c.long.takeBackWhere(g, func(s *collStep) bool { return s.peer == i })
			if i != g.rank {
				c.ordered.relayGone(g, g.peerOf(i))
			}
		}
	}
	if len(c.joins.list) != 0 {
		c.joins.pump() // without those that have failed
	}
}

// sendsTo reports whether the operation has something to send to a rank.
func (o *collOp) sendsTo(rank int) bool {
	if o.exchange != nil && o.exchange.engine.Needs(o.group.peerOf(rank)) {
		return true
	}
	for s := o.group.members[rank].queue; s != nil; s = s.next {
		if s.op == o {
			return true
		}
	}
	return o.c.long.sendsTo(o, rank)
}

// cancelAll ends all operations of a group that is left. The members have this one's word of that before.
func (g *Group) cancelAll(c *Protocol) {
	for _, o := range g.runs.under {
		if o.status == fi.Success {
			o.status = fi.ECANCELED
			c.end(o)
		}
	}
	c.long.takeBackWhere(g, func(*collStep) bool { return true })
}

// dropEarly drops what came for operations that will not be.
func (g *Group) dropEarly(c *Protocol) {
	for i := range g.members {
		m := &g.members[i]
		for h := m.ahead; h != nil; {
			next := h.next
			if h.kind == earlyRTS {
				c.long.refuse(m, h.head.Request, fi.ECANCELED)
			}
			c.freeEarly(h)
			h = next
		}
		m.ahead, m.aheadLast = nil, nil
	}
	// nothing is left to be sent: cancelAll has dropped it
	c.blocked = slices.DeleteFunc(c.blocked, func(m *collMember) bool {
		m.blocked = m.queue != nil
		return !m.blocked
	})
}

// Close gives the memory back. No group is left, and the interfaces are closed.
func (c *Protocol) Close() {
	for _, t := range c.ordered.unflushed { // there will be no room
		t.done.Update(1, hw.ErrCanceled)
	}
	c.ordered.unflushed = nil
	c.Groups.close()
}

// close gives the memory back that posting threads use.
func (c *Groups) close() {
	for o := c.free; o != nil; o = o.next {
		o.drop()
	}
	c.free = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.persistent { // of requests that were not freed; none is under way
		k.freed = true
		k.close()
	}
	clear(c.persistent)
}
