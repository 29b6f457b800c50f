package coll

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Which joins may belong together says a key: a hash of the ports of the members'
// names, in their order, and of the group that the join is made through. Not
// of their IP addresses, because a peer with several is known by different ones;
// names without a port count as a whole. A word counts for a rank only if it comes
// from the peer that this side's set has at it.
//
// Joins of the same members through the same group have numbers. Each member numbers its own from 1 in the order in
// which it makes them, and those with the same number are one group. A join that is
// closed, or fails, before it has ended is withdrawn: its member has no other of that
// number, so no other member's join of it can end any more. Members need not know why:
//
//   - A member that has no word for a join, but one of a higher number from the same
//     member, gives the join a higher number: that one, or, if this side has had a
//     join of it, the next of its own. To the others this is a withdrawal and a new join,
//     with a new number of the group, so that nothing of the former comes into it.
//   - The words for one member go in the order of the numbers, so that one does not come
//     before a lower one that counts.
//   - A withdrawn word that a join has taken is one that it lacks again, until the join has
//     ended; then it is that of a member that has left.
//   - A join of which a member has withdrawn its word, and gives no other in the time that a silent peer has, fails
//     (withdraw.go).
//   - A member says that it has taken a word: with its own one, or, where that has gone, after it. A join ends when
//     all have said so, as a word that is there may be of a member that has withdrawn since.
//
// So no join before matters: not those that were withdrawn, and not how many a member has
// made that began anew. When no member closes any more, the lowest joins rise to
// the numbers of the others, and all that each member has one of end. A join that has ended at
// one member while another one withdrew it is a group that the latter has left.
//
// TestJoins and TestJoinsByChance go through orders in which this can happen.

// joining is how a group comes about.
type joining struct {
	// Set by Join, the last two by Notify, and immutable then.
	key     uint64
	own     uint64 // a hash of the whole names: this side's key of the series
	through uint64 // the token of the group that the join is made through, 0: none
	context uint64
	events  *eq.Queue    // to which the join reports
	fid     uintptr      // of the C object, in events
	waiting *eq.Progress // until the join has ended; nil before Notify

	// The lease holder's.
	series  *series
	number  uint64 // in it
	reached bool   // all members are connected
	void    bool   // a word was withdrawn: the join ends under another number only
	spans   bool   // a member is reached over the network
	first   bool   // this member's rank is the lowest of its host
	left    int    // members that have not joined
	lacks   int    // members that have withdrawn their words and given no others
	unsent  int    // members that have not got this side's word
	untaken int    // members that have not said that they have taken it
	token   uint64 // what all members know alike when they have joined
}

// series are the joins of the same members through the same group. The lease holder's.
type series struct {
	last    uint64 // number of a join of this side
	through uint64 // as of its joins
	unsent  bool   // one before has words to send: scratch of pump
}

// joins are those of an endpoint that have not ended. The lease holder's.
type joins struct {
	c       *Protocol
	list    []*Group           // of which members are missing; those of a series in the order of their numbers
	series  map[uint64]*series // by joining.own
	early   []earlyJoin
	pumping bool // pump runs
	again   bool // and is to do so again
}

// earlyJoin is a member's word that no join of this side has taken.
type earlyJoin struct {
	src  hw.Source
	key  uint64
	head wire.CollJoin
	left bool   // and has left already
	back uint64 // joining.own of the join that has given it back, 0: none has
}

// maxEarly bounds what members of no group cost.
const maxEarly = 1 << 16

// Notify notifies the members. fid is the C object, which the event names: of
// fi.JoinComplete when all have joined, or the error why that cannot be.
func (g *Group) Notify(fid uintptr) {
	g.c.host.WithLease(func(c *Protocol) {
		g.join.fid = fid
		g.join.waiting = g.join.events.AddProgress(g.c.host.Progress)
		s := c.joins.series[g.join.own]
		if s == nil {
			s = &series{through: g.join.through}
			c.joins.series[g.join.own] = s
		}
		s.last++
		g.join.series, g.join.number = s, s.last
		c.joins.list = append(c.joins.list, g)
		g.mayHave(c, s.last)
		c.joins.pump()
	})
}

// mayHave fails a join that would have a number which members do not take, as one of them has used up those before. It
// reports whether the join goes on.
func (g *Group) mayHave(c *Protocol, number uint64) bool {
	if number > wire.MaxJoins {
		g.warn("join: number %d, of at most %d", number, uint64(wire.MaxJoins))
		g.failed(c, fi.EINVAL)
	}
	return g.state.Load() == groupJoining
}

// forget forgets the joins that were made through a group, as no more are.
func (js *joins) forget(through uint64) {
	if through != 0 {
		maps.DeleteFunc(js.series, func(_ uint64, s *series) bool { return s.through == through })
	}
}

// pump notifies members that have not been, and ends the joins that are complete. What comes of that, such as that
// a peer is gone, may call it again.
func (js *joins) pump() {
	js.again = true
	if js.pumping {
		return
	}
	for js.pumping = true; js.again; {
		js.again = false
		js.pumpOnce()
	}
	js.pumping = false
}

func (js *joins) pumpOnce() {
	for _, g := range js.list {
		g.expire(js.c)
		g.connect(js.c)
		g.join.series.unsent = false
	}
	js.match()
	for _, g := range js.list {
		if g.join.reached && !g.join.series.unsent {
			g.sendJoins(js.c)
		}
		if g.state.Load() == groupJoining && g.join.unsent == 0 {
			g.agree(js.c)
		}
		g.join.series.unsent = g.join.series.unsent || g.unsent()
	}
	var failed []*Group
	js.list = slices.DeleteFunc(js.list, func(g *Group) bool {
		if g.state.Load() == groupJoining && g.join.left+g.join.unsent+g.join.untaken == 0 {
			g.joined(js.c)
		}
		if g.state.Load() == groupFailed {
			failed = append(failed, g)
		}
		return g.state.Load() != groupJoining
	})
	for _, g := range failed {
		g.giveBack(js.c)
		js.again = true
	}
	js.early = slices.DeleteFunc(js.early, js.spent)
}

// spent reports whether a word was given back and there is no join any more that has to rise beyond it.
func (js *joins) spent(j earlyJoin) bool {
	return j.back != 0 && !slices.ContainsFunc(js.list, func(g *Group) bool {
		return g.join.own == j.back && g.join.number < j.head.Number
	})
}

// unsent reports whether a join has words to send.
func (js *joins) unsent() bool { return slices.ContainsFunc(js.list, (*Group).unsent) }

// unsent reports whether the join has words to send.
func (g *Group) unsent() bool { return g.join.unsent != 0 && g.state.Load() == groupJoining }

// connect connects to the members, before which no word of theirs is known to be of one.
func (g *Group) connect(c *Protocol) {
	if g.join.reached || !g.unsent() {
		return
	}
	err := g.reach()
	if err != nil && !errors.Is(err, fi.EAGAIN) {
		g.failed(c, fi.ErrnoOf(err))
	}
	g.join.reached = err == nil
}

// sendJoins sends this side's word to the members that can be reached by now.
func (g *Group) sendJoins(c *Protocol) {
	for i := range g.members {
		m := &g.members[i]
		if m.notified || !g.unsent() {
			continue
		}
		p, err := m.peer.Connect()
		if err == nil {
			h := g.word(m)
			err = c.ep.Post(p, wire.AMCollJoin, g.join.key, h.Put(c.head[:]), nil)
		}
		switch {
		case err == nil:
			m.notified = true
			g.join.unsent--
		case errors.Is(err, fi.EAGAIN):
		default:
			g.failed(c, fi.ErrnoOf(err))
			return
		}
	}
}

// word is this side's for a member.
func (g *Group) word(m *collMember) wire.CollJoin {
	return wire.CollJoin{Group: g.id, Number: g.join.number, Taken: m.joined, Size: uint32(len(g.members)),
		Rank: uint32(g.rank), Settings: g.settingsOf()}
}

// onJoin is a member's word.
func (js *joins) onJoin(src hw.Source, key uint64, head, payload []byte) {
	j := earlyJoin{src: src, key: key}
	if !j.head.Parse(head) {
		js.c.malformed(src, "join of %d bytes does not parse", len(head))
		return
	}
	if len(js.early) >= maxEarly {
		js.c.malformed(src, "join of a group that is not known here, as are %d others", len(js.early))
		return
	}
	js.early = append(js.early, j)
	if len(js.list) != 0 {
		js.pump()
	}
}

// match gives members' words to the joins of their numbers, and joins beyond which members are higher ones.
func (js *joins) match() {
	for more := true; more; {
		js.early = slices.DeleteFunc(js.early, js.take)
		more = slices.ContainsFunc(js.early, js.raise)
	}
}

// of returns the member of a join whose word it is, nil: there is none.
func (j *earlyJoin) of(c *Protocol, g *Group) *collMember {
	if g.state.Load() != groupJoining || j.key != g.join.key || int(j.head.Size) != len(g.members) {
		return nil
	}
	if m := &g.members[j.head.Rank]; m.peer != nil && c.ep.IsFrom(j.src, m.peer) {
		return m
	}
	return nil
}

// take reports whether a word is not needed any more: a join has taken it, or all have higher numbers.
func (js *joins) take(j earlyJoin) bool {
	higher, others := false, false
	for _, g := range js.list {
		m := j.of(js.c, g)
		switch {
		case m == nil:
		case g.join.number > j.head.Number:
			higher = true
		case g.join.number == j.head.Number && !m.joined:
			g.accept(js.c, m, &j)
			return true
		default:
			others = true
		}
	}
	return higher && !others
}

// accept takes a member's word.
func (g *Group) accept(c *Protocol, m *collMember, j *earlyJoin) {
	m.joined, m.src, m.id, m.left = true, j.src, j.head.Group, j.left
	m.settings = j.head.Settings
	g.returns(m)
	g.join.left--
	if j.head.Taken {
		g.known(m, true)
	}
	if m.notified { // else the word says so
		h := wire.CollNote{Group: g.id, Taken: true}
		c.control(m, wire.AMCollNote, m.id, h.Put(c.head[:]))
	}
}

// known notes whether a member has taken this side's word.
func (g *Group) known(m *collMember, is bool) {
	if m.knows != is {
		if m.knows = is; is {
			g.join.untaken--
		} else {
			g.join.untaken++
		}
	}
}

// onTaken is the word of a member that it has taken this side's of a join.
func (js *joins) onTaken(src hw.Source, id, group uint64) {
	g := js.c.group(id)
	if g == nil || g.state.Load() != groupJoining {
		return
	}
	for i := range g.members {
		if m := &g.members[i]; m.joined && m.peer != nil && m.src == src && m.id == group {
			g.known(m, true)
			js.pump()
			return
		}
	}
}

// raise gives the first join that lacks a word of a member, of which there is one with a higher number, such a
// number. It reports whether there was one.
func (js *joins) raise(j earlyJoin) bool {
	for _, g := range js.list {
		if m := j.of(js.c, g); m != nil && !m.joined && !j.left && g.join.number < j.head.Number {
			s := g.join.series
			s.last = max(s.last+1, j.head.Number)
			g.renumber(js.c, s.last)
			return true
		}
	}
	return false
}

// renumber withdraws the join and begins it with another number, which no join of the series has.
func (g *Group) renumber(c *Protocol, number uint64) {
	if !g.mayEnd(c) || !g.mayHave(c, number) {
		return
	}
	g.sendLeave(c, true)
	g.giveBack(c)
	g.dropEarly(c)
	clear(g.runs.doomed)
	for i := range g.members {
		if m := &g.members[i]; m.peer != nil {
			m.unjoin()
			m.notified, m.knows, m.left, m.early = false, false, false, 0
		}
	}
	g.join.number, g.join.void = number, false
	g.join.left, g.join.unsent, g.join.untaken = len(g.members)-1, len(g.members)-1, len(g.members)-1
	c.mu.Lock()
	c.name(g)
	c.mu.Unlock()
	// the words go in the order of numbers
	c.joins.list = append(slices.DeleteFunc(c.joins.list, func(o *Group) bool { return o == g }), g)
}

// giveBack gives the words that a join has taken and that is withdrawn back, if this side has a join with a lower
// number: that has to rise beyond them.
func (g *Group) giveBack(c *Protocol) {
	if !slices.ContainsFunc(c.joins.list, func(o *Group) bool {
		return o.join.series == g.join.series && o.join.number < g.join.number
	}) {
		return
	}
	for i := range g.members {
		if m := &g.members[i]; m.joined && m.peer != nil && !m.left && !m.gone && len(c.joins.early) < maxEarly {
			h := wire.CollJoin{Group: m.id, Number: g.join.number, Size: uint32(len(g.members)), Rank: uint32(i)}
			c.joins.early = append(c.joins.early, earlyJoin{src: m.src, key: g.join.key, head: h, back: g.join.own})
		}
	}
}

// unjoin has a member's word not have come.
func (g *Group) unjoin(c *Protocol, m *collMember) {
	m.unjoin()
	g.known(m, false)
	g.join.left++
	g.mayEnd(c)
}

// unjoin has a member not have joined.
func (m *collMember) unjoin() { m.joined, m.src, m.id = false, 0, 0 }

// joined ends a join.
func (g *Group) joined(c *Protocol) {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, g.join.key)
	for i := range g.members {
		id := g.members[i].id
		if i == g.rank {
			id = g.id
		}
		_ = binary.Write(h, binary.LittleEndian, id)
	}
	g.join.token = h.Sum64()
	g.decide(c)
	g.state.Store(groupJoined)
	g.join.events.Post(eq.Completion(fi.JoinComplete, g.join.fid, g.join.context, 0))
	g.join.waiting.End()
}

// failed ends a join that cannot be, and withdraws it.
func (g *Group) failed(c *Protocol, err fi.Errno) { g.fails(c, err, true) }

// fails ends a join that cannot be. One that is not withdrawn cannot be at the other members either.
func (g *Group) fails(c *Protocol, err fi.Errno, withdrawn bool) {
	if g.state.Load() != groupJoining {
		return
	}
	g.warn("join: %v", err)
	g.state.Store(groupFailed)
	if withdrawn {
		g.sendUnsent(c)
	}
	g.sendLeave(c, withdrawn)
	g.join.events.PostError(eq.ErrEntry{FID: g.join.fid, Context: g.join.context, Err: err})
	g.join.waiting.End()
}

// without ends a join under way of which a member is gone that this side has notified. One that has left had ended the
// join, for which it had the words of all: those to this side are on their way, unless one was withdrawn.
func (g *Group) without(c *Protocol, m *collMember) {
	if !m.left || !m.knows || g.join.void {
		g.failed(c, fi.ECONNRESET)
	}
}

// mayEnd fails a join under way that lacks another's word again while a member that had ended it is gone: that one has
// no other join to end. It reports whether the join goes on.
func (g *Group) mayEnd(c *Protocol) bool {
	if slices.ContainsFunc(g.members, func(m collMember) bool { return m.gone || m.dead }) {
		g.failed(c, fi.ECONNRESET)
	}
	return g.state.Load() == groupJoining
}

// sendLeave notifies the members that know of this side that it is no more; withdrawn: before the join had ended.
func (g *Group) sendLeave(c *Protocol, withdrawn bool) {
	h := wire.CollNote{Group: g.id, Withdrawn: withdrawn}
	for i := range g.members {
		if m := &g.members[i]; m.notified && m.peer != nil {
			c.control(m, wire.AMCollNote, m.id, h.Put(c.head[:]))
		}
	}
}

// left handles that a member has left the group, or withdrawn its join.
func (js *joins) left(g *Group, m *collMember, withdrawn bool) {
	if withdrawn && g.state.Load() == groupJoining {
		g.join.void = true
		g.withdraws(js.c, m)
		g.unjoin(js.c, m)
		js.pump()
		return
	}
	m.left = true
	js.c.failAwaiting(g, m)
}

// leftEarly is the word of a member that left before it knew this side's
// number of the group.
func (js *joins) leftEarly(src hw.Source, group uint64, withdrawn bool) {
	for i := range js.early {
		if j := &js.early[i]; j.src == src && j.head.Group == group {
			if j.left = true; withdrawn {
				js.early = slices.Delete(js.early, i, i+1)
			}
			return
		}
	}
	for _, g := range js.c.groups {
		if g == nil {
			continue
		}
		for i := range g.members {
			if m := &g.members[i]; m.joined && m.peer != nil && !m.gone && m.src == src && m.id == group {
				js.left(g, m, withdrawn)
				return
			}
		}
	}
}
