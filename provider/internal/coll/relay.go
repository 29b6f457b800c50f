package coll

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Pieces of slices that go through other members of an all-to-all. Package exchange says
// which; here they are sent, kept in the endpoint's store and passed on.

// relayPiece is the bytes of a piece.
const relayPiece = 8 << 10

// pendingPiece is a piece that is not sent yet, in the order of its receiver's.
type pendingPiece struct {
	action exchange.Action
	sent   int64 // bytes of it
}

// relayStore is where the endpoint keeps what it relays. The caller has c.mu.
func (c *Groups) relayStore() *exchange.Store {
	if c.store == nil {
		c.store = exchange.NewStore(int64(c.cfg.RelaySize), relayPiece)
	}
	return c.store
}

// sendPieces sends pending pieces, as far as there is room, after the chunks of their receivers.
func (xs *exchanges) sendPieces(o *collOp) {
	x := o.exchange
	x.pieces.Step(func(p *pendingPiece) bool {
		to := &x.peers.at(p.action.Peer).pending
		err := error(fi.EAGAIN)
		if to.n == 0 && !to.full {
			err = xs.sendPiece(o, p)
		}
		if errors.Is(err, fi.EAGAIN) {
			to.full = true // the next ones stay behind it
			return false
		}
		if p.action.Place >= 0 {
			x.engine.Passed(&p.action)
			x.more = true // there is room for the next
		}
		return true
	})
	for i := range x.pieces {
		x.peers.at(x.pieces[i].action.Peer).pending.full = false
	}
}

// sendPiece sends what is left of a piece. An error other than fi.EAGAIN drops it: its source
// sends it again.
func (xs *exchanges) sendPiece(o *collOp, p *pendingPiece) error {
	g, x, a := o.group, o.exchange, &p.action
	m := &g.members[g.rankOf(a.Peer)]
	if m.dead || m.left || m.gone {
		return fi.ECONNRESET
	}
	path, err := m.peer.Connect()
	if err != nil {
		return err
	}
	over := path.Over()
	over.Notify()
	for p.sent < relayPiece {
		h := wire.CollPiece{CollStep: o.head(), Part: a.Piece}
		h.Part.Offset = p.sent
		data := x.pieceOf(g, a)[p.sent:]
		data = data[:min(len(data), over.MaxAMBcopy)]
		if err := xs.c.ep.Post(path, wire.AMCollStep, m.id, h.Put(xs.c.head[:]), data); err != nil {
			return err
		}
		p.sent += int64(len(data))
	}
	return nil
}

// pieceOf is the bytes of a piece.
func (x *collExchange) pieceOf(g *Group, a *exchange.Action) []byte {
	if a.Place >= 0 {
		return g.c.store.Data(a.Place)
	}
	in := x.peers.at(a.Slice).in
	end := in.Off + in.Len - uint64(a.Piece.Number)*relayPiece
	return x.given[end-relayPiece : end]
}

// relayed is the operation, its member and the peer that a message about relays is for; o is nil
// if there is none, and over says whether it is past.
func (xs *exchanges) relayed(src hw.Source, id uint64, h *wire.CollStep) (o *collOp, m *collMember, over bool) {
	g, m := xs.c.member(src, id, h.Rank, "piece or note")
	if m == nil {
		return nil, nil, false
	}
	switch o = g.runs.under[h.Seq]; {
	case o == nil && g.runs.over(h.Seq):
		return nil, m, true
	case o == nil || o.exchange == nil || o.kind != h.Kind:
		xs.c.malformed(src, "piece or note about operation %d, which is no exchange", h.Seq)
		return nil, m, false
	case o.status != fi.Success:
		return nil, m, false
	}
	return o, m, false
}

// onRelayNote is what a source or a relay says.
func (xs *exchanges) onRelayNote(src hw.Source, id uint64, head []byte) {
	var h wire.CollRelay
	if !h.Parse(head) {
		xs.c.malformed(src, "note of %d bytes about a relay does not parse", len(head))
		return
	}
	o, m, over := xs.relayed(src, id, &h.CollStep)
	if over && h.Note.Kind == exchange.NoteAsk {
		says := wire.CollRelay{CollStep: h.CollStep, Note: exchange.Note{Kind: exchange.NoteRefuse,
			Serial: h.Note.Serial}}
		says.Rank = uint32(xs.c.group(id).rank)
		xs.say(m, says.Put(xs.c.head[:]))
	}
	if o == nil {
		return
	}
	o.advancing = true
	if !o.exchange.engine.OnNote(xs.refresh(o), o.group.peerOf(int(h.Rank)), h.Note) {
		xs.c.malformed(src, "note %d about request %d of a relay", h.Note.Kind, h.Note.Serial)
	}
	xs.goOn(o)
}

// onPiece is a fragment of a piece, to be passed on or for this member.
func (xs *exchanges) onPiece(src hw.Source, id uint64, head, payload []byte) {
	var h wire.CollPiece
	if !h.Parse(head) || len(payload) == 0 {
		xs.c.malformed(src, "piece of %d bytes with %d does not parse", len(head), len(payload))
		return
	}
	o, _, _ := xs.relayed(src, id, &h.CollStep)
	if o == nil {
		return
	}
	o.advancing = true
	if !xs.takePiece(o, &h, payload) {
		xs.c.malformed(src, "piece %d at %d of a slice of %d bytes, which is not the next or was not asked for",
			h.Part.Number, h.Part.Offset, h.Part.Total)
	}
	xs.goOn(o)
}

// takePiece takes in a fragment of a piece. It returns false if that cannot be right.
func (xs *exchanges) takePiece(o *collOp, h *wire.CollPiece, payload []byte) bool {
	g, x, n := o.group, o.exchange, int64(len(payload))
	now, from := xs.refresh(o), g.peerOf(int(h.Rank))
	if h.Part.Hop {
		place, ok := x.engine.OnRelayed(now, from, &h.Part, n)
		if ok && place >= 0 {
			copy(xs.c.store.Data(place)[h.Part.Offset:][:n], payload)
		}
		return ok
	}
	origin, off, keep, ok := x.engine.OnPiece(now, from, &h.Part, n)
	if ok && keep {
		to := x.peers.out(origin)
		copy(x.got[to.Off+uint64(off):][:n], payload)
		x.arrived(o, origin, to.Len)
	}
	return ok
}

// relayGone has the operations of a group go on without a member that they do not need.
func (xs *exchanges) relayGone(g *Group, peer int) {
	if !g.ways.relays {
		return
	}
	for _, o := range g.runs.under {
		if o.exchange == nil || o.status != fi.Success {
			continue
		}
		o.exchange.engine.Gone(xs.c.ep.Now(), peer)
		if o.exchange.more = true; !o.advancing {
			o.advancing = true
			xs.goOn(o)
		}
	}
}

// stop gives back what is kept for others.
func (x *collExchange) stop() {
	for i := range x.pieces {
		if a := &x.pieces[i].action; a.Place >= 0 {
			x.engine.Passed(a)
		}
	}
	x.pieces = x.pieces[:0]
	x.engine.Stop()
}
