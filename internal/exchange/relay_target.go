package exchange

import (
	"math/bits"

	"github.com/weft-fabric/weft/internal/congestion"
)

// inTail is what has come of the end of a slice, in pieces: those below low, and bit k of have is
// piece low + k.
type inTail struct {
	low  uint32
	have uint64
}

// carried is the piece that a peer is sending, of whatever slice.
type carried struct {
	origin int32
	number uint32
	at     int64 // bytes of it that have come
}

// count is how many pieces have come.
func (t *inTail) count() int64 { return int64(t.low) + int64(bits.OnesCount64(t.have)) }

// top is how many pieces there are up to the first one of the slice that has come.
func (t *inTail) top() int64 { return int64(t.low) + int64(bits.Len64(t.have)) }

// has reports whether a piece has come.
func (t *inTail) has(number uint32) bool {
	return number < t.low || number-t.low < relayWindow && t.have>>(number-t.low)&1 != 0
}

// add takes in a piece.
func (t *inTail) add(number uint32) {
	t.have |= 1 << (number - t.low)
	for t.have&1 != 0 {
		t.have >>= 1
		t.low++
	}
}

// OnPiece takes in n bytes of a piece for this member, which a peer sends for itself or passes on. It
// returns the peer that gave them, and where they belong in its slice; keep is
// false for bytes that are there already. ok is false if they cannot be right, which drops them.
func (e *Engine) OnPiece(now congestion.Time, from int, c *Piece, n int64) (origin int, off int64, keep, ok bool) {
	o := c.Third
	if o == Own {
		o = int32(from)
	}
	if !e.relays.relaying() || o < 0 || o >= int32(e.cfg.Peers) || c.Third == int32(from) {
		e.report.Forged++
		return 0, 0, false, false
	}
	in := &e.at(o).in
	by := &e.at(int32(from)).carries
	off = in.want - (int64(c.Number)+1)*e.cfg.Piece
	next := by.origin == o && by.number == c.Number && by.at == c.Offset || c.Offset == 0
	if c.Total != in.want || in.want <= e.cfg.Short || off < 0 || n <= 0 || n > e.cfg.Piece-c.Offset || !next {
		e.report.Forged++
		return 0, 0, false, false
	}
	twice := in.over || in.tail.has(c.Number)
	if !twice && (off < in.got || c.Number-in.tail.low >= relayWindow) {
		e.report.Forged++
		return 0, 0, false, false
	}
	*by = carried{origin: o, number: c.Number, at: c.Offset + n}
	e.relays.heard = now
	if twice {
		if by.at == e.cfg.Piece {
			e.report.Twice++
		}
		return int(o), 0, false, true
	}
	e.in.bytes += n
	if by.at == e.cfg.Piece {
		e.report.Received += e.cfg.Piece
		e.in.left -= e.cfg.Piece
		in.tail.add(c.Number)
		e.in.whole(now, o)
		e.speak(o)
	}
	e.in.tick(now)
	return int(o), off + c.Offset, true, true
}
