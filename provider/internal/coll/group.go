package coll

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/internal/refs"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// A group is joined by all of its members, each of which sends all others its own
// number of the group. When a member has heard of all, it has joined: its messages
// name the group by the receiver's number, so nothing has to be agreed on.
//
// Which joins belong together says a key: a hash of the ports of the members'
// names, in their order, and of the group that the join is made through. Not
// of their IP addresses, because a peer with several is known by different ones;
// names without a port count as a whole.
// Joins with equal keys are matched in the order in which each member makes
// them. A message counts for a rank only if it comes from the peer that this
// side's set has at it.

// States of a group. Changed by the lease holder, read by posting threads;
// sequentially consistent.
const (
	groupJoining uint32 = iota
	groupJoined
	groupFailed
	groupClosed
)

// Group is an endpoint's part in a group of collective operations: what
// fi_join_collective returns.
type Group struct {
	c     *Groups
	refs  refs.Count
	state atomic.Uint32 // stored by the lease holder, loaded by any thread; sequentially consistent

	// Set by Join, and immutable then.
	id      uint64 // by which the members name it: generation and index
	rank    int
	ranks   map[fi.Addr]int
	members []collMember // the lease holder's; their number is immutable

	join    joining
	ways    ways
	runs    runs
	plans   plans
	engines engines
}

// joining is how a group comes about.
type joining struct {
	// Set by Join, the last two by Notify, and immutable then.
	key     uint64
	context uint64
	events  *eq.Queue    // to which the join reports
	fid     uintptr      // of the C object, in events
	waiting *eq.Progress // until the join has ended; nil before Notify

	// The lease holder's.
	reached bool   // all members are connected
	spans   bool   // a member is reached over the network, or reaches one so
	first   bool   // this member's rank is the lowest of its host
	hosts   int    // members that are so
	left    int    // members that have not joined
	unsent  int    // members that have not got this side's word
	token   uint64 // what all members know alike when they have joined
}

// collMember is one member as this one sees it.
type collMember struct {
	peer     Peer      // used until the group closes; nil for this endpoint itself
	id       uint64    // the member's number of the group
	src      hw.Source // that its messages come from
	joined   bool      // id and src are known
	first    bool      // it is counted in hosts
	notified bool      // that this side joins
	left     bool      // sends nothing more
	gone     bool      // so, because it is not there any more
	dead     bool      // cannot be sent to

	queue, last *collStep  // sends that wait for room
	blocked     bool       // in collectives.blocked
	ahead       *earlyStep // what came too early, in order
	aheadLast   *earlyStep
	early       int // bytes of chunks in it
}

// earlyJoin is a member's word that came before this side knew its group.
type earlyJoin struct {
	src  hw.Source
	key  uint64
	head wire.CollJoin
	left bool // and has left already
}

// maxEarly bounds what members of no group cost.
const maxEarly = 1 << 16

// Join begins to join the group of a set's members. addr is the set's address,
// fi.AddrNotAvail, or the address of a group that this endpoint is in, with
// which joins of equal sets are distinguished. [Group.Notify] notifies the others;
// the event comes then, in events and with the context. Errors: fi.EINVAL for an address that is neither,
// members of which one is twice there, is not in the address vector or this endpoint is none, and fi.ENOSPC.
func (c *Groups) Join(addr, set fi.Addr, members []fi.Addr, events *eq.Queue, context uint64) (*Group, error) {
	through, ok := c.through(addr, set)
	if !ok {
		return nil, log.Reject(log.EPData, fi.EINVAL,
			"join: %#x is neither the set's address nor a group's", uint64(addr))
	}
	g := &Group{
		c: c, rank: -1, ranks: map[fi.Addr]int{}, join: joining{context: context, events: events},
		runs:  runs{under: map[uint32]*collOp{}, doomed: map[uint32]fi.Errno{}},
		plans: plans{algorithm: c.cfg.AllToAll, of: map[collective.Call]*collective.Plan{}},
	}
	if err := g.fill(members, through); err != nil {
		g.letGo()
		return nil, log.Reject(log.EPData, fi.ErrnoOf(err), "join: %v", err)
	}
	return g, g.open()
}

// through returns what a join through an address is distinguished by.
func (c *Groups) through(addr, set fi.Addr) (token uint64, ok bool) {
	if addr == fi.AddrNotAvail || addr == set {
		return 0, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.find(addr)
	if g == nil || g.state.Load() != groupJoined {
		return 0, false
	}
	return g.join.token, true
}

// fill finds the members.
func (g *Group) fill(addrs []fi.Addr, through uint64) error {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, through)
	g.members = make([]collMember, len(addrs))
	seen := map[Peer]bool{}
	for i, a := range addrs {
		n, p, err := g.c.host.Member(a)
		if err != nil {
			return err
		}
		_, _ = h.Write(n.AppendFixed(nil)) // never fails
		g.ranks[a] = i
		if p == nil {
			if g.rank >= 0 {
				return log.Reject(log.EPData, fi.EINVAL, "this endpoint is member %d and %d of the set", g.rank, i)
			}
			g.rank = i
			g.members[i].joined, g.members[i].notified = true, true
			continue
		}
		g.members[i].peer = p
		if seen[p] {
			return log.Reject(log.EPData, fi.EINVAL, "%s is in the set twice", n)
		}
		seen[p] = true
	}
	if g.rank < 0 || len(addrs) > wire.MaxMembers {
		return log.Reject(log.EPData, fi.EINVAL, "this endpoint is not among the %d members", len(addrs))
	}
	_ = binary.Write(h, binary.LittleEndian, uint32(len(addrs)))
	g.join.key = h.Sum64()
	g.join.left, g.join.unsent = len(addrs)-1, len(addrs)-1
	return nil
}

// letGo releases the peers.
func (g *Group) letGo() {
	for i := range g.members {
		if p := g.members[i].peer; p != nil {
			p.Release()
			g.members[i].peer = nil
		}
	}
}

// open enters the group.
func (g *Group) open() error {
	err := g.c.host.Acquire()
	if err != nil {
		g.letGo()
		return err
	}
	g.c.host.WithLease(func(c *Protocol) {
		c.mu.Lock()
		defer c.mu.Unlock()
		err = c.enter(g)
	})
	if err != nil {
		g.letGo()
		g.c.host.Release()
	}
	return err
}

// Addr is the address by which operations name the group.
func (g *Group) Addr() fi.Addr { return g.addr() }

// Notify notifies the members. fid is the C object, which the event names: of
// fi.JoinComplete when all have joined, or the error why that cannot be.
func (g *Group) Notify(fid uintptr) {
	g.c.host.WithLease(func(c *Protocol) {
		g.join.fid = fid
		g.join.waiting = g.join.events.AddProgress(g.c.host.Progress)
		c.joining = append(c.joining, g)
		c.pumpJoins()
	})
}

// pumpJoins notifies members that have not been, and ends the joins that are complete.
func (c *Protocol) pumpJoins() {
	for _, g := range c.joining {
		if g.join.unsent != 0 {
			g.sendJoins(c)
		}
	}
	c.matchJoins()
	c.joining = slices.DeleteFunc(c.joining, func(g *Group) bool {
		if g.state.Load() == groupJoining && g.join.left == 0 && g.join.unsent == 0 {
			g.joined(c)
		}
		return g.state.Load() != groupJoining
	})
}

// sendJoins sends this side's word to the members that can be reached by now.
func (g *Group) sendJoins(c *Protocol) {
	if !g.join.reached {
		if err := g.reach(); err != nil {
			if !errors.Is(err, fi.EAGAIN) {
				g.failed(c, fi.ErrnoOf(err))
			}
			return
		}
		g.join.reached = true
	}
	for i := range g.members {
		m := &g.members[i]
		if m.notified {
			continue
		}
		p, err := m.peer.Connect()
		if m.dead {
			err = fi.ECONNRESET // its address has another process now
		}
		if err == nil {
			h := wire.CollJoin{Group: g.id, Size: uint32(len(g.members)), Rank: uint32(g.rank),
				Settings: g.settingsOf()}
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

// onJoin is a member's word.
func (c *Protocol) onJoin(src hw.Source, key uint64, head, payload []byte) {
	j := earlyJoin{src: src, key: key}
	if !j.head.Parse(head) {
		c.malformed(src, "join of %d bytes does not parse", len(head))
		return
	}
	if len(c.early) >= maxEarly {
		c.malformed(src, "join of a group that is not known here, as are %d others", len(c.early))
		return
	}
	c.early = append(c.early, j)
	if len(c.joining) != 0 {
		c.pumpJoins()
	}
}

// matchJoins gives members' words to the first group that lacks them.
func (c *Protocol) matchJoins() {
	c.early = slices.DeleteFunc(c.early, func(j earlyJoin) bool {
		for _, g := range c.joining {
			if g.accept(c, &j) {
				return true
			}
		}
		return false
	})
}

// accept takes a member's word, if the group lacks it.
func (g *Group) accept(c *Protocol, j *earlyJoin) bool {
	if g.state.Load() != groupJoining || j.key != g.join.key || int(j.head.Size) != len(g.members) {
		return false
	}
	m := &g.members[j.head.Rank]
	if m.joined || m.peer == nil || !c.ep.IsFrom(j.src, m.peer) {
		return false
	}
	m.joined, m.src, m.id, m.left = true, j.src, j.head.Group, j.left
	g.join.left--
	g.agree(c, j.head.Rank, &j.head.Settings)
	return true
}

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

// failed ends a join that cannot be.
func (g *Group) failed(c *Protocol, err fi.Errno) {
	if g.state.Load() != groupJoining || g.join.waiting == nil {
		return // over, or not begun: sendJoins will see
	}
	g.warn("join: %v", err)
	g.state.Store(groupFailed)
	g.sendLeave(c)
	g.join.events.PostError(eq.ErrEntry{FID: g.join.fid, Context: g.join.context, Err: err})
	g.join.waiting.End()
}

// sendLeave notifies the members that know of this side that it is no more.
func (g *Group) sendLeave(c *Protocol) {
	h := wire.CollNote{Group: g.id}
	for i := range g.members {
		if m := &g.members[i]; m.notified {
			c.control(m, wire.AMCollNote, m.id, h.Put(c.head[:]))
		}
	}
}

// Close leaves the group. Operations under way end with fi.ECANCELED, and at the
// members with an error if they need this one.
func (g *Group) Close() error {
	if err := g.refs.Close(); err != nil {
		return err
	}
	if g.join.waiting != nil {
		g.join.waiting.End()
		g.join.waiting.Wait()
	}
	g.c.host.WithLease(func(c *Protocol) {
		was := g.state.Swap(groupClosed)
		c.dropPosted(g)
		if was != groupFailed {
			g.sendLeave(c)
		}
		g.cancelAll(c)
		g.dropEarly(c)
		c.joining = slices.DeleteFunc(c.joining, func(o *Group) bool { return o == g })
		c.mu.Lock()
		c.groups[uint32(g.id)] = nil
		c.mu.Unlock()
	})
	g.letGo()
	g.c.host.Release()
	return nil
}
