package provider

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/wire"
)

// Chunks as puts. When an operation begins, a member offers each sender of a long slice the memory where the slice
// belongs (wire.CollTarget). From then on the sender puts its chunks there and, when a put has completed, sends which
// bytes are in place (wire.CollPut), in the slice's order: so on no transport does a count come before its data. A
// chunk goes as a message where there is no offer yet, where the transport's puts need more than a key, and where the
// put is refused at once, so no member waits for an offer.
//
// Memory that is offered is registered for one sender and one operation, and the registration ends before the
// operation completes, with whatever outcome: no peer writes to memory that its owner has back. What a put reads is the
// operation's until the put has ended: one that fails completes no sooner.

// putPiece is the most bytes of a put, putTurn the most that this thread copies before it serves others, and putHere
// those of a slice from which on it is put between members of one host by default (docs/design.md, section 16, has what
// was measured).
const (
	putPiece = 256 << 10
	putTurn  = 4 << 20
	putHere  = 1 << 20
)

// earlyTarget is what an offer counts that comes before its operation begins, in bytes: more than it costs, so that no
// member has many kept.
const earlyTarget = 8 << 10

// putTarget is where a peer's slice goes: the zero value if the peer has not offered it, or puts do not get there.
type putTarget struct {
	port *port // over which the offer came
	key  hw.RemoteKey
}

// collPut is a put of a part of a chunk. It belongs to the lease holder, and is used again when it has ended and the
// receiver has the word of that.
type collPut struct {
	done  hw.Completion
	next  *collPut // free, or behind it of those to the peer
	xs    *exchanges
	op    *collOp
	peer  int
	part  exchange.Chunk // from the first byte on
	bytes int64
	ended bool
	err   error
}

// takesPuts reports whether chunks go over the port as puts: with a key of eight bytes and nothing else, and what has
// completed is in the peer's memory.
func (p *port) takesPuts() bool {
	const caps = hw.CapPutZcopy | hw.CapPutPlaced
	if p.attr.Caps&caps != caps || p.Memory() == nil {
		return false
	}
	a := p.Memory().Attr()
	return a.MaxKey == wire.CollKey && a.Caps&(hw.MDLocal|hw.MDCost) == 0
}

// leastPut is the length of the slices, in bytes, from which on they are put over a port.
func (g *Group) leastPut(p *port) uint64 {
	switch {
	case g.ep.domain.cfg.AllToAll == "put":
		return exchangeShort + 1
	case p.attr.Caps&hw.CapSameHost != 0:
		return putHere
	}
	return ^uint64(0)
}

// offer offers the senders of long slices where these belong.
func (xs *exchanges) offer(o *collOp) {
	g, x := o.group, o.exchange
	if !g.puts {
		return
	}
	for i, peer := range x.peers.ids {
		p, m := &x.peers.all[i], &g.members[g.rankOf(int(peer))]
		path, ok := m.link.ready()
		if !ok || !path.port.takesPuts() || p.out.Len < g.leastPut(path.port) {
			continue
		}
		data := x.got[p.out.Off:][:p.out.Len]
		r, err := path.port.Memory().Register(hw.Region{
			Addr: pointerAt(addressOfBytes(data)), Len: len(data), Access: hw.LocalWrite | hw.RemoteWrite,
		})
		if err != nil {
			log.Infof(log.EPData, "%d bytes come as messages: %v", len(data), err)
			continue
		}
		p.region = r
		h := wire.CollTarget{CollStep: o.head(), Length: p.out.Len}
		h.SetKey(r.PackKey(xs.key[:0]))
		xs.c.control(m, wire.AMCollCTS, m.id, h.Put(xs.c.ep.rx.head[:]))
	}
}

// withdraw ends what was offered: when it returns no peer writes there any more.
func (xs *exchanges) withdraw(o *collOp) {
	if o.exchange == nil {
		return
	}
	for i := range o.exchange.peers.all {
		if p := &o.exchange.peers.all[i]; p.region != nil {
			_ = p.region.Close()
			p.region = nil
		}
	}
}

// onTarget is a receiver's offer.
func (xs *exchanges) onTarget(src hw.Source, id uint64, head []byte) {
	var h wire.CollTarget
	if !h.Parse(head) {
		xs.c.malformed(src, "target of %d bytes does not parse", len(head))
		return
	}
	g, m := xs.c.member(src, id, h.Rank, "target")
	if m == nil {
		return
	}
	switch o := g.ops[h.Seq]; {
	case !g.puts:
		xs.c.malformed(src, "target in a group without puts")
	case o == nil && g.over(h.Seq): // it has failed here, or has nothing for the receiver, which hears of that
	case o == nil:
		xs.holdTarget(g, m, &h)
	case o.exchange == nil:
		xs.c.unlike(o, &h.CollStep)
	default:
		o.advancing = true
		xs.takeTarget(o, m, &h)
		xs.goOn(o)
	}
}

// holdTarget keeps an offer until the operation begins.
func (xs *exchanges) holdTarget(g *Group, m *collMember, h *wire.CollTarget) {
	if m.early+earlyTarget > maxEarlyChunks {
		xs.c.malformed(m.src, "targets of operations that have not begun, beside %d bytes", m.early)
		return
	}
	if kept := xs.c.holdStep(g, m, &wire.CollLong{CollStep: h.CollStep}, nil, false); kept != nil {
		kept.chunked, kept.target = true, *h
		m.early += kept.share()
	}
}

// takeTarget takes in an offer.
func (xs *exchanges) takeTarget(o *collOp, m *collMember, h *wire.CollTarget) {
	x, peer := o.exchange, o.group.peerOf(int(h.Rank))
	to := x.peers.in(peer)
	switch {
	case o.status != fi.Success:
		return
	case h.Kind != o.kind:
		xs.c.unlike(o, &h.CollStep)
		return
	case h.Length != to.Len:
		o.group.warn("operation %d: rank %d expects %d bytes of this one, which has %d for it", o.seq, h.Rank,
			h.Length, to.Len)
		xs.c.fail(o, fi.ETRUNC)
		return
	}
	port, _ := xs.c.ep.portOf(m.src)
	q := x.peers.at(peer)
	if q.target.port != nil || !port.takesPuts() {
		xs.c.malformed(m.src, "target of operation %d, again or over a transport without puts", o.seq)
		return
	}
	key, err := port.Memory().UnpackKey(h.PackedKey(xs.key[:0]))
	if err != nil {
		xs.c.malformed(m.src, "target of operation %d: %v", o.seq, err)
		return
	}
	q.target = putTarget{port, key}
}

// put begins to put a part of a pending chunk, and returns how long it is: 0 if it is to go as a message.
func (xs *exchanges) put(o *collOp, path *path, peer int, h *exchange.Chunk) (int64, error) {
	x, q := o.exchange, o.exchange.peers.at(peer)
	if xs.copied >= putTurn {
		return 0, fi.EAGAIN
	}
	n := min(h.Length, putPiece)
	data := x.given[q.in.Off:][:q.in.Len][h.Offset:][:n]
	t := xs.newPut(o, peer, h, n)
	local := append(xs.c.ep.rx.local[:0], hw.Segment{Addr: pointerAt(addressOfBytes(data)), Len: int(n)})
	status, err := path.Endpoint.(hw.OneSided).PutZcopy(local, uint64(h.Offset), q.target.key, &t.done)
	xs.c.ep.rx.local[0] = hw.Segment{}
	if err != nil {
		xs.freePut(t)
	}
	switch {
	case errors.Is(err, hw.ErrKey), errors.Is(err, hw.ErrPermission): // no room for the key, or the kernel refuses
		q.target.key, q.refused = hw.RemoteKey{}, true
		return 0, nil
	case err != nil && sendError(err) == fi.EAGAIN:
		return 0, fi.EAGAIN
	case err != nil:
		o.group.warn("put %d bytes to rank %d: %v", n, o.group.rankOf(peer), err)
		return 0, copyError(err)
	}
	if q.puts == nil {
		q.puts = t
	} else {
		q.lastPut.next = t
	}
	q.lastPut = t
	if t.ended = status == hw.Done; t.ended {
		xs.copied += n
		xs.sendPuts(o, peer)
	} else {
		x.flying++
	}
	return n, nil
}

// newPut returns a put of n bytes from the beginning of a part of a chunk on.
func (xs *exchanges) newPut(o *collOp, peer int, h *exchange.Chunk, n int64) *collPut {
	t := xs.puts
	if t == nil {
		t = &collPut{xs: xs}
		t.done.Func = func(c *hw.Completion) { t.finished(c.Err()) }
	} else {
		xs.puts = t.next
	}
	t.next, t.op, t.peer, t.part, t.bytes, t.ended, t.err = nil, o, peer, *h, n, false, nil
	t.done.Expect(1)
	return t
}

func (xs *exchanges) freePut(t *collPut) { t.op, t.next, xs.puts = nil, xs.puts, t }

// finished takes in that a put has ended. The transport calls it under the progress lease, or while the endpoint
// closes.
func (t *collPut) finished(err error) {
	xs, o := t.xs, t.op
	if xs.c.ep.state.Load() == stateClosed {
		return
	}
	t.ended, t.err = true, err
	x := o.exchange
	x.flying--
	switch {
	case o.status != fi.Success && x.flying == 0 && !o.advancing:
		xs.c.settle(o)
	case o.status != fi.Success || errors.Is(err, hw.ErrKey): // the receiver's operation has failed: its note comes
	case err != nil:
		o.group.warn("put %d bytes to rank %d: %v", t.bytes, o.group.rankOf(t.peer), err)
		xs.c.fail(o, copyError(err))
	default:
		o.advancing = true
		xs.sendPuts(o, t.peer)
		xs.goOn(o)
	}
}

// sendPuts sends a peer which bytes are in place, up to the first that are not.
func (xs *exchanges) sendPuts(o *collOp, peer int) {
	q, m := o.exchange.peers.at(peer), &o.group.members[o.group.rankOf(peer)]
	for t := q.puts; t != nil && t.ended && t.err == nil; t = q.puts {
		h := wire.CollPut{Bytes: uint64(t.bytes)}
		h.CollStep, h.Part = o.head(), t.part
		xs.c.control(m, wire.AMCollStep, m.id, h.Put(xs.c.ep.rx.head[:]))
		xs.c.ep.stats.Rx(stats.RxExchangePut, uint64(t.bytes))
		q.puts = t.next
		xs.freePut(t)
	}
}

// dropPuts forgets the puts of an operation, all of which have ended.
func (xs *exchanges) dropPuts(x *collExchange) {
	for i := range x.peers.all {
		p := &x.peers.all[i]
		for t := p.puts; t != nil; t = p.puts {
			p.puts = t.next
			xs.freePut(t)
		}
		p.lastPut = nil
	}
}

// onPut says which bytes a sender has put into place.
func (xs *exchanges) onPut(src hw.Source, id uint64, head, payload []byte) {
	var h wire.CollPut
	if !h.Parse(head) || len(payload) != 0 {
		xs.c.malformed(src, "word of a put of %d bytes with %d does not parse", len(head), len(payload))
		return
	}
	g, m := xs.c.member(src, id, h.Rank, "put")
	if m == nil {
		return
	}
	o := g.ops[h.Seq]
	if o == nil && g.over(h.Seq) {
		return // it has failed here
	}
	if o == nil || o.exchange == nil || h.Kind != o.kind || o.exchange.peers.region(g.peerOf(int(h.Rank))) == nil {
		xs.c.malformed(src, "put of operation %d, of which it has no target", h.Seq)
		return
	}
	o.advancing = true
	if peer := g.peerOf(int(h.Rank)); xs.next(o, m, peer, &h.Part, int64(h.Bytes)) {
		o.exchange.arrived(o, peer, uint64(h.Part.Total))
	}
	xs.goOn(o)
}
