package coll

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/internal/refs"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// A group is joined by all of its members, each of which sends all others its own
// number of the group. When a member has heard of all, it has joined: its messages
// name the group by the receiver's number, so nothing has to be agreed on. How the
// joins meet says join.go.

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

	// id is by what the members name it: generation and index. Set by Join, and changed by the lease holder with c.mu
	// until the join has ended.
	id uint64

	// Set by Join, and immutable then.
	address fi.Addr
	rank    int
	ranks   map[fi.Addr]int
	members []collMember // the lease holder's; their number is immutable

	join    joining
	ways    ways
	runs    runs
	plans   plans
	engines engines
}

// collMember is one member as this one sees it.
type collMember struct {
	peer     Peer              // used until the group closes; nil for this endpoint itself
	id       uint64            // the member's number of the group
	src      hw.Source         // that its messages come from
	joined   bool              // id and src are known
	notified bool              // that this side joins
	knows    bool              // has taken that
	left     bool              // sends nothing more
	gone     bool              // so, because it is not there any more
	dead     bool              // cannot be sent to
	withdrew congestion.Time   // when it withdrew its word for a join and gave no other since, 0: it has not
	settings wire.CollSettings // with joined

	queue, last *collStep  // sends that wait for room
	blocked     bool       // in collectives.blocked
	ahead       *earlyStep // what came too early, in order
	aheadLast   *earlyStep
	early       int // bytes of chunks in it
}

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
		c: c, rank: -1, ranks: map[fi.Addr]int{}, join: joining{through: through, context: context, events: events},
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
	h, own := fnv.New64a(), fnv.New64a()
	_ = binary.Write(io.MultiWriter(h, own), binary.LittleEndian, through)
	g.members = make([]collMember, len(addrs))
	seen := map[Peer]bool{}
	for i, a := range addrs {
		n, p, err := g.c.host.Member(a)
		if err != nil {
			return err
		}
		_, _ = h.Write(n.AppendFixed(nil)) // never fails
		_ = binary.Write(own, binary.LittleEndian, n)
		g.ranks[a] = i
		if p == nil {
			if g.rank >= 0 {
				return log.Reject(log.EPData, fi.EINVAL, "this endpoint is member %d and %d of the set", g.rank, i)
			}
			g.rank = i
			m := &g.members[i]
			m.joined, m.notified, m.knows = true, true, true
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
	g.join.key, g.join.own = h.Sum64(), own.Sum64()
	g.join.left, g.join.unsent, g.join.untaken = len(addrs)-1, len(addrs)-1, len(addrs)-1
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
func (g *Group) Addr() fi.Addr { return g.address }

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
		if was == groupJoining && g.join.series != nil {
			g.sendUnsent(c)
		}
		if was != groupFailed {
			g.sendLeave(c, was == groupJoining)
		}
		g.cancelAll(c)
		g.dropEarly(c)
		c.joins.list = slices.DeleteFunc(c.joins.list, func(o *Group) bool { return o == g })
		if was == groupJoining && g.join.series != nil {
			g.giveBack(c)
			c.joins.pump()
		}
		c.joins.forget(g.join.token)
		c.mu.Lock()
		c.groups[uint32(g.id)] = nil
		c.mu.Unlock()
	})
	g.letGo()
	g.c.host.Release()
	return nil
}
