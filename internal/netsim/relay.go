package netsim

import (
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// sendPiece sends a piece to a relay or its target.
func (f *pairFlow) sendPiece(a *exchange.Action) {
	kept := *a
	f.heads = append(f.heads, load{Chunk: exchange.Chunk{Length: f.to.group.piece}, piece: &kept})
	f.flow.Add((f.to.group.piece + f.flow.size - 1) / f.flow.size)
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
