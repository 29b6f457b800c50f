package coll

import (
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Notes of members, members that are lost, and groups and endpoints that end: what waits for them fails.

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

// failAwaiting fails the operations that wait for a message, or the memory, of a member that sends
// nothing more.
func (c *Protocol) failAwaiting(g *Group, m *collMember) {
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
			c.failAwaiting(g, m)
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
