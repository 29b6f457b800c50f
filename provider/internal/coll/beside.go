package coll

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/internal/proc"
)

// The endpoints of a host share its link, so an engine has to know what the other members of its host do
// ([exchange.Use]). Each endpoint says that of its exchanges in the notice of its shared-memory interface
// (hw.Noticeboard), which only it writes; the others read it before events. No message goes, nothing is locked, and
// nothing has to be cleaned up: the notice of a process that is gone reads as 0, and one of a process that is stopped,
// or does not poll, counts for nothing after staleUse. What a notice says is checked by the engine; a wrong one costs
// time only.

// Words of a notice about exchanges. Each is stored and loaded by itself, sequentially consistent: a reader may see
// some of before and some of after, which is no less right than either.
const (
	useStamp   = iota // changes with each writing; 0: no operation is under way
	useLink           // identifies the link
	usePairs          // Pairs << 32 | Active
	useCredits        // Invited << 1 | Waits
	useShare          // bits of a float64
	useGiven
	useTaken
	useGot
	useLeft
	useInLeft
)

const (
	// useEvery is how often a notice is written and read at most.
	useEvery = 100 * time.Microsecond
	// staleUse is after which time without a change a notice counts for nothing.
	staleUse = time.Second
)

// besides is what an endpoint says of its exchanges. The lease holder's.
type besides struct {
	own   *hw.Notice // nil: no peer shares memory with this endpoint
	link  uint64
	stamp uint64
	total exchange.Use // whose counters go on
	wrote congestion.Time
}

// beside is what an operation has read of another member of the host.
type beside struct {
	rank  int
	stamp uint64
	since congestion.Time // that it has been so
}

// openBesides prepares what an endpoint says, at its first group.
func (xs *exchanges) openBesides() {
	b, e := &xs.beside, xs.c.ep
	if b.link != 0 {
		return
	}
	local := e.Transports()[0]
	if board, ok := local.Iface.(hw.Noticeboard); ok && local.Caps&hw.CapSameHost != 0 {
		b.own = board.OwnNotice()
	}
	b.link = linkName(e)
}

// linkName identifies the link of an endpoint's network transports among those of the host: by the network namespace,
// the transports and the address that the endpoint is bound to. It is not 0.
func linkName(e Leased) uint64 {
	h := fnv.New64a()
	if here, err := proc.This(); err == nil {
		_ = binary.Write(h, binary.LittleEndian, here.NetNS)
	}
	for _, p := range e.Transports() {
		if p.Caps&hw.CapSameHost == 0 {
			_, _ = h.Write([]byte(p.DeviceName + "\x00"))
		}
	}
	name := e.Name()
	_ = binary.Write(h, binary.LittleEndian, name.Family)
	_, _ = h.Write(name.IP[:])
	return h.Sum64() | 1
}

// near reports whether a member shares this host's memory.
func (m *collMember) near() bool {
	if m.peer == nil {
		return false
	}
	p, ok := m.peer.Ready()
	return ok && p.Over().Caps&hw.CapSameHost != 0
}

// share has an engine know which members are on this host.
func (x *collExchange) share(g *Group) {
	for rank := range g.members {
		if rank != g.rank && g.members[rank].near() {
			x.engine.Near(g.peerOf(rank))
			x.besides = append(x.besides, beside{rank: rank})
		}
	}
	x.uses = make([]exchange.Use, len(x.besides))
}

// refresh has an engine know what the other members of the host do, if it has not just been done, and returns the
// time. It is called before the engine's events.
func (xs *exchanges) refresh(o *collOp) congestion.Time {
	now, x := xs.c.ep.Now(), o.exchange
	if len(x.besides) == 0 || now.Sub(x.readAt) < useEvery {
		return now
	}
	x.readAt = now
	for k := range x.besides {
		b := &x.besides[k]
		x.uses[k] = xs.beside.read(&o.group.members[b.rank], b, now)
	}
	x.engine.Share(now, x.uses)
	return now
}

// read is what another member does, nothing if it is not known or uses another link.
func (b *besides) read(m *collMember, seen *beside, now congestion.Time) exchange.Use {
	if m.left || m.gone || m.dead || m.peer == nil {
		return exchange.Use{}
	}
	p, ok := m.peer.Ready()
	if !ok || p.Over().Caps&hw.CapSameHost == 0 {
		return exchange.Use{}
	}
	reader, ok := p.Transport().(hw.NoticeReader)
	if !ok {
		return exchange.Use{}
	}
	n := reader.PeerNotice()
	stamp := atomic.LoadUint64(&n[useStamp])
	if stamp != seen.stamp {
		seen.stamp, seen.since = stamp, now
	}
	if stamp == 0 || now.Sub(seen.since) > staleUse || atomic.LoadUint64(&n[useLink]) != b.link {
		return exchange.Use{}
	}
	pairs, credits := atomic.LoadUint64(&n[usePairs]), atomic.LoadUint64(&n[useCredits])
	return exchange.Use{
		On: true, Waits: credits&1 != 0, Pairs: uint32(pairs >> 32), Active: uint32(pairs),
		Invited: uint32(credits >> 1), Share: math.Float64frombits(atomic.LoadUint64(&n[useShare])),
		Given: atomic.LoadUint64(&n[useGiven]), Taken: atomic.LoadUint64(&n[useTaken]),
		Got: atomic.LoadUint64(&n[useGot]), Left: int64(atomic.LoadUint64(&n[useLeft])),
		InLeft: int64(atomic.LoadUint64(&n[useInLeft])),
	}
}

// publish writes what this endpoint's exchanges do, if that was not just done; always if none is under way.
func (xs *exchanges) publish(now congestion.Time) {
	b := &xs.beside
	shared := slices.ContainsFunc(xs.list, func(o *collOp) bool { return len(o.exchange.besides) != 0 })
	if b.own == nil || shared && now.Sub(b.wrote) < useEvery {
		return
	}
	b.wrote = now
	if !shared {
		atomic.StoreUint64(&b.own[useStamp], 0)
		return
	}
	u := exchange.Use{Given: b.total.Given, Taken: b.total.Taken, Got: b.total.Got}
	for _, o := range xs.list {
		is := o.exchange.engine.Use()
		u.Add(&is, &o.exchange.used)
		o.exchange.used = is
	}
	b.total = u
	b.stamp++
	waits := uint64(0)
	if u.Waits {
		waits = 1
	}
	for k, v := range [...]uint64{
		useLink: b.link, usePairs: uint64(u.Pairs)<<32 | uint64(u.Active), useCredits: uint64(u.Invited)<<1 | waits,
		useShare: math.Float64bits(u.Share), useGiven: u.Given, useTaken: u.Taken, useGot: u.Got,
		useLeft: uint64(u.Left), useInLeft: uint64(u.InLeft),
	} {
		if k != useStamp {
			atomic.StoreUint64(&b.own[k], v)
		}
	}
	atomic.StoreUint64(&b.own[useStamp], b.stamp)
}
