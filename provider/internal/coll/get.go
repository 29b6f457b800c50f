package coll

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Chunks as gets. When an operation begins, a member offers each receiver of a long slice the memory where the slice is
// (wire.CollTarget). The engine of the sender decides as ever: instead of a chunk it sends that the chunk may be
// fetched (wire.CollGrant). The receiver gets it straight to where it belongs, and its engine knows of bytes when the
// get has completed, in the slice's order. A slice that was not offered goes as messages. A receiver whose get is
// refused at once says so (wire.CollRefusal), and what is missing comes as messages, from the last grants on.
//
// The offer ends before the sender's operation completes, so the transport refuses a late get; that of a persistent
// operation stays registered as with puts. What a get writes is the receiver's operation's until the get has ended, as
// with what a put reads.

// takesGets reports whether chunks may come over the transport as gets. They do by name only: on one host a get is the
// same copy as a put, over UDP packets like a message's, and everywhere it waits for a word more.
func (p *Transport) takesGets() bool { return p.Caps&hw.CapGetZcopy != 0 && p.copies() }

// grant lets a peer get the first pending chunk.
func (xs *exchanges) grant(o *collOp, m *collMember, peer int, p *pendingChunks) {
	q := o.exchange.peers.getsOf(peer)
	if q.gives == len(q.given) { // the peer has acknowledged the first one: no more are on their way
		copy(q.given[:], q.given[1:])
		q.gives--
	}
	q.given[q.gives] = p.ends[0]
	q.gives++
	h := wire.CollGrant{CollStep: o.head(), Part: p.head}
	xs.c.control(m, wire.AMCollCTS, m.id, h.Put(xs.c.head[:]))
	p.sent(p.head.Length)
}

// onGrant is a sender's word that a chunk may be fetched.
func (xs *exchanges) onGrant(src hw.Source, id uint64, head []byte) {
	var h wire.CollGrant
	if !h.Parse(head) {
		xs.c.malformed(src, "grant of %d bytes does not parse", len(head))
		return
	}
	g, m := xs.c.member(src, id, h.Rank, "grant")
	if m == nil {
		return
	}
	if !g.ways.gets && g.state.Load() != groupJoining {
		xs.c.malformed(src, "grant in a group without gets")
		return
	}
	early := earlyStep{kind: earlyGrant, head: wire.CollLong{CollStep: h.CollStep}, part: h.Part}
	if o := xs.begun(g, m, &early, nil); o != nil {
		xs.takeGrant(o, m, &h)
		xs.goOn(o)
	}
}

// takeGrant takes in that a chunk may be fetched.
func (xs *exchanges) takeGrant(o *collOp, m *collMember, h *wire.CollGrant) {
	x, peer := o.exchange, o.group.peerOf(int(h.Rank))
	if !xs.expected(o, &h.CollStep, &h.Part) {
		return
	}
	q, gets := x.peers.at(peer), x.peers.getsOf(peer)
	switch p := &gets.grants; {
	case q.target.transport == nil || h.Part.Offset != gets.granted || p.n == len(p.ends):
		xs.c.malformed(m.src, "grant of %d bytes at %d, which are not the next or not offered",
			h.Part.Length, h.Part.Offset)
	case q.refused: // the sender hears of it
		gets.granted += h.Part.Length
	default:
		gets.granted += h.Part.Length
		p.add(&h.Part)
		x.fetches = p.list(int32(peer), x.fetches)
	}
}

// fetchAll begins to get what may be fetched, as far as there is room.
func (xs *exchanges) fetchAll(o *collOp) {
	x := o.exchange
	x.fetches.Step(func(peer *int32) bool {
		err := error(nil)
		p := &x.peers.getsOf(int(*peer)).grants
		for p.n != 0 && err == nil && o.status == fi.Success {
			err = xs.fetch(o, int(*peer))
		}
		if err != nil && !errors.Is(err, fi.EAGAIN) {
			xs.c.fail(o, fi.ErrnoOf(err))
		}
		p.in = p.n != 0
		return !p.in
	})
}

// fetch begins to get a part of the first chunk that a peer lets this member get.
func (xs *exchanges) fetch(o *collOp, peer int) error {
	q, p := o.exchange.peers.at(peer), &o.exchange.peers.getsOf(peer).grants
	m := &o.group.members[o.group.rankOf(peer)]
	if m.dead {
		return fi.ECONNRESET
	}
	path, err := m.peer.Connect()
	if err != nil {
		return err
	}
	h := &p.head
	h.Length = p.ends[0] - h.Offset
	n := int64(0)
	if q.target.transport == path.Over() {
		if n, err = xs.copy(o, path, peer, h); err != nil {
			return err
		}
	}
	if n == 0 {
		q.refused, p.n = true, 0
		xs.land(o, m, peer)
		return nil
	}
	p.sent(n)
	return nil
}

// land has the engine know of the bytes that were got, up to the first that are not here. When no get is left whose
// outcome is not known, the peer hears of one that was refused.
func (xs *exchanges) land(o *collOp, m *collMember, peer int) {
	q := o.exchange.peers.at(peer)
	for t := q.copies; t != nil && t.ended && t.err == nil; t = q.copies {
		if xs.next(o, m, peer, &t.part, t.bytes) {
			o.exchange.arrived(o, peer, uint64(t.part.Total))
			xs.c.ep.Stats().Rx(stats.RxExchangeGot, uint64(t.bytes))
		}
		q.copies = t.next
		xs.freeCopy(t)
	}
	if gets := o.exchange.peers.getsOf(peer); q.refused && q.copies == nil && !gets.said {
		gets.said = true
		h := wire.CollRefusal{CollStep: o.head(), From: uint64(gets.grants.head.Offset)}
		xs.c.control(m, wire.AMCollStep, m.id, h.Put(xs.c.head[:]))
	}
}

// onRefusal is a receiver's word that it cannot get what it was offered.
func (xs *exchanges) onRefusal(src hw.Source, id uint64, head, payload []byte) {
	var h wire.CollRefusal
	if !h.Parse(head) || len(payload) != 0 {
		xs.c.malformed(src, "refusal of %d bytes with %d does not parse", len(head), len(payload))
		return
	}
	g, m := xs.c.member(src, id, h.Rank, "refusal")
	if m == nil {
		return
	}
	o, peer := g.runs.under[h.Seq], g.peerOf(int(h.Rank))
	if o == nil && g.runs.over(h.Seq) {
		return // it has failed here
	}
	if !g.ways.gets || o == nil || o.exchange == nil || h.Kind != o.kind || o.exchange.peers.region(peer) == nil ||
		!o.takeBack(peer, int64(h.From)) {
		xs.c.malformed(src, "refusal of operation %d from byte %d on", h.Seq, h.From)
		return
	}
	o.advancing = true
	xs.goOn(o)
}

// takeBack has what a peer was let get from a byte on be sent as messages, and all that follows. It returns false if
// the peer was let get nothing there.
func (o *collOp) takeBack(peer int, from int64) bool {
	x := o.exchange
	q, gets := x.peers.at(peer), x.peers.getsOf(peer)
	given := gets.given[:gets.gives]
	for len(given) != 0 && given[0] <= from {
		given = given[1:]
	}
	p := &q.pending
	if len(given) == 0 || len(given)+p.n > len(p.ends) {
		return false
	}
	o.revoke(peer)
	copy(p.ends[len(given):], p.ends[:p.n])
	copy(p.ends[:], given)
	p.n += len(given)
	p.head.Total, p.head.Offset = int64(q.in.Len), from
	x.ready = p.list(int32(peer), x.ready)
	return true
}
