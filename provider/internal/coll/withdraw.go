package coll

import (
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// A member that has withdrawn its word for a join may join again, and then the joins meet under another number. It need
// not, so the join of another member that was under way fails when that takes longer than a silent peer has. One that
// a member has given no word for yet waits without limit: how late a program comes is its own affair.

// withdraws notes that a member has withdrawn its word.
func (g *Group) withdraws(c *Protocol, m *collMember) {
	if m.withdrew == 0 {
		m.withdrew = max(c.ep.Now(), 1)
		g.join.lacks++
	}
}

// returns notes that it has given another.
func (g *Group) returns(m *collMember) {
	if m.withdrew != 0 {
		m.withdrew = 0
		g.join.lacks--
	}
}

// expires reports whether a join is to end at a time.
func (js *joins) expires() bool {
	return slices.ContainsFunc(js.list, func(g *Group) bool { return g.join.lacks != 0 })
}

// expire fails a join if a member has withdrawn its word and has given no other for as long as a peer may be silent.
func (g *Group) expire(c *Protocol) {
	if g.join.lacks == 0 {
		return
	}
	now := c.ep.Now()
	for i := range g.members {
		if m := &g.members[i]; m.withdrew != 0 && now.Sub(m.withdrew) >= c.cfg.PeerTimeout {
			g.warn("join: rank %d has withdrawn, and has not joined again for %v", i, c.cfg.PeerTimeout)
			g.failed(c, fi.ETIMEDOUT)
			return
		}
	}
}

// sendUnsent sends this side's word, which is about to be withdrawn, to the connected members that have not got it, or
// they would not know that it was. Not where a join before has a word to send, which has to come first: that one is
// awaited there.
func (g *Group) sendUnsent(c *Protocol) {
	for i := range g.members {
		m := &g.members[i]
		if m.peer == nil || m.notified || m.dead || m.gone {
			continue
		}
		behind := slices.ContainsFunc(c.joins.list, func(o *Group) bool {
			return o.join.series == g.join.series && o.join.number < g.join.number && !o.members[i].notified
		})
		if _, connected := m.peer.Ready(); connected && !behind {
			h := g.word(m)
			c.control(m, wire.AMCollJoin, g.join.key, h.Put(c.head[:]))
			m.notified = true
			g.join.unsent--
		}
	}
}
