package coll

import (
	"github.com/weft-fabric/weft/fi"
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
