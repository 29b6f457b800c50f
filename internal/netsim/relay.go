package netsim

import (
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// refused answers a request to a relay of which the member knows that it refuses.
func (m *groupMember) refused(a *exchange.Action) bool {
	g := m.group
	if g.refuses == nil || a.Kind != exchange.SendNote || a.Note.Kind != exchange.NoteAsk {
		return false
	}
	relay := (m.rank + 1 + a.Peer) % len(g.members)
	if !g.refuses(m.rank, relay, (relay+1+int(a.Note.Third))%len(g.members)) {
		return false
	}
	m.engine.OnNote(g.net.now, a.Peer, exchange.Note{Kind: exchange.NoteRefuse, Serial: a.Note.Serial})
	return true
}

// sendPiece sends a piece to a relay or its target.
func (f *pairFlow) sendPiece(a *exchange.Action) {
	kept := *a
	f.heads = append(f.heads, load{Chunk: exchange.Chunk{Length: f.to.group.piece}, piece: &kept})
	f.flow.AddBytes(f.to.group.piece)
}

// arrivedPiece takes in n bytes of a piece at the receiver. The sender's copy is not needed any
// more when all of them are there.
func (f *pairFlow) arrivedPiece(now congestion.Time, l *load, n int64) {
	c := l.piece.Piece
	c.Offset = f.at - n
	if c.Hop {
		f.to.engine.OnRelayed(now, f.back, &c, n)
	} else {
		f.to.engine.OnPiece(now, f.back, &c, n)
	}
	if f.at == l.Length && l.piece.Place >= 0 {
		f.from.engine.Passed(l.piece)
		f.from.pump()
	}
}

// heard takes in what the receiver says.
func (f *pairFlow) heard(a *exchange.Action) {
	now := f.from.group.net.now
	if a.Kind == exchange.SendNote {
		f.from.engine.OnNote(now, f.peer, a.Note)
	} else {
		f.from.engine.OnWord(now, f.peer, a.Word)
	}
}
