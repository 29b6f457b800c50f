package exchange

import "github.com/weft-fabric/weft/internal/congestion"

// Kind is what is to be sent.
type Kind uint8

const (
	// SendChunk is a chunk of a slice.
	SendChunk Kind = iota
	// SendWord is a word.
	SendWord
	// SendNote says something about relays.
	SendNote
	// SendPiece is a piece, to a relay or to its target.
	SendPiece
)

// Action is something to be sent.
type Action struct {
	Kind Kind
	Peer int
	// Head is a chunk's: Offset, Length and so on.
	Head Chunk
	// Word is a word's.
	Word Word
	// Note is a note's.
	Note Note
	// Piece is a piece's. Its bytes are in place Place of the store, or where that is below 0 in
	// what this member has for the peer Slice. [Engine.Passed] says that a place is not needed any more.
	Piece Piece
	Slice int
	Place int

	ask   uint32 // by which the piece came, of asker
	asker int32
}

// Next returns what is to be sent next, or false. It is to be called after each event
// until it returns false. The caller may keep what is to be sent until there is
// room, in order for each peer.
func (e *Engine) Next(now congestion.Time) (Action, bool) {
	if i := e.words.head(); i >= 0 {
		e.words.remove(i)
		return Action{Kind: SendWord, Peer: int(i), Word: e.in.word(i), Place: -1}, true
	}
	if a, ok := e.relays.notes.pop(); ok {
		return a, true
	}
	if i := e.nears.head(); i >= 0 {
		return e.nextOf(now, i, &e.nears), true
	}
	if e.pausing(now) {
		return Action{}, false
	}
	if a, ok := e.relays.pieces.pop(); ok {
		e.paced(now, e.cfg.Piece)
		return a, true
	}
	i := e.emits.head()
	if i < 0 {
		a, ok := e.relays.onward.pop()
		if ok {
			e.paced(now, e.cfg.Piece)
		}
		return a, ok
	}
	return e.nextOf(now, i, &e.emits), true
}

// nextOf is the next chunk of a peer, which is in a list for as long as it may send more.
func (e *Engine) nextOf(now congestion.Time, i int32, of *list) Action {
	p := e.at(i)
	a := Action{Kind: SendChunk, Peer: int(i), Head: e.emit(now, i, p), Place: -1}
	if p.left() == 0 || p.flying >= e.reach(p) || p.over {
		of.remove(i)
	} else {
		of.renew(i)
	}
	return a
}

// length is what the next chunk of a slice has.
func (e *Engine) length(p *peer) int64 {
	if p.total <= e.cfg.Short {
		return p.total
	}
	chunk := e.chunk
	if p.near {
		chunk = e.cfg.Chunk
	}
	n := min(p.left(), chunk)
	if !p.near {
		n = min(n, e.relayedChunk(p))
	}
	if most := e.reach(p); most == Deepest {
		n = max(n, p.left()/int64(max(most-p.flying, 1)))
	}
	if rest := p.left() - n; rest > 0 && rest <= chunk/4 && n+rest <= 1<<30 {
		n += rest
	}
	return n
}

// emit makes the next chunk of a slice.
func (e *Engine) emit(now congestion.Time, i int32, p *peer) Chunk {
	n := e.length(p)
	c := Chunk{Total: p.total, Offset: p.sent, Length: n, Delay: p.queue}
	p.sent += n
	p.stats.chunk(now.Sub(e.started))
	e.report.Chunks++
	if !p.near {
		e.paced(now, n)
		e.drained = max(e.drained, now).Add(e.airtime(n))
		e.left -= n
		e.given += uint64(n)
		e.choices++
	}
	if p.total > e.cfg.Short {
		e.launch(now, p, n)
		return c
	}
	if !p.near {
		e.delivered(n)
	}
	p.acked = n
	e.sentAll(i, p)
	return c
}

// launch takes in that a chunk is on its way.
func (e *Engine) launch(now congestion.Time, p *peer, n int64) {
	f := flight{
		end: p.sent, at: now, acked: p.acked, all: e.carried, began: e.ackedAt, length: n, burst: e.pace.number,
	}
	if e.flying == 0 {
		f.began = now
	}
	if p.flying == 0 {
		e.known.takeAir(p)
	}
	if !p.near {
		if p.flying == 0 {
			e.active++
		}
		e.flying++
	}
	p.flight[p.flying] = f
	p.flying++
}

// sentAll ends the sending to a peer.
func (e *Engine) sentAll(i int32, p *peer) {
	p.over = true
	e.outOver++
	e.discount(i)
}
