package exchange

import "github.com/weft-fabric/weft/internal/congestion"

// relayAsk is a request that this member has accepted: to pass pieces from one peer on to another.
type relayAsk struct {
	open     bool
	ended    bool // used is known
	from     int32
	target   int32
	serial   uint32
	granted  uint32 // pieces, in all
	received uint32
	passed   uint32
	used     uint32
	places   [relayGrants]int32 // of granted pieces, by number modulo
	at       int64              // bytes of the piece that arrives
	number   uint32             // of it
}

// onAsk takes in a request. A member without a place for it, or with a path to the target
// that is not faster, refuses.
func (rs *relays) onAsk(i int32, n *Note) bool {
	if n.Third < 0 || n.Third >= int32(rs.e.cfg.Peers) || n.Third == i {
		return false
	}
	var free *relayAsk
	for k := range rs.asks {
		a := &rs.asks[k]
		if a.open && a.from == i && a.serial == n.Serial {
			return false // twice
		}
		if !a.open {
			free = a
		}
	}
	t := rs.e.at(n.Third)
	slow := t.rate > 0 && t.rate < relaySlow*n.Rate && rs.e.slow(t) && !rs.e.cfg.Always
	if free == nil || t.absent() || t.near || slow || rs.asksOf(i) == relayMost {
		rs.note(i, Note{Kind: NoteRefuse, Serial: n.Serial})
		return true
	}
	*free = relayAsk{open: true, from: i, target: n.Third, serial: n.Serial}
	rs.asked++
	rs.grant()
	return true
}

// asksOf is how many requests of a peer are open.
func (rs *relays) asksOf(i int32) (n int) {
	for k := range rs.asks {
		if a := &rs.asks[k]; a.open && a.from == i {
			n++
		}
	}
	return n
}

// onEnd takes in that a peer needs no more, and how many pieces it has sent.
func (rs *relays) onEnd(i int32, n *Note) bool {
	a := rs.askOf(i, n.Serial)
	if a == nil {
		return true // it was refused meanwhile
	}
	if a.ended || n.Count < a.received || n.Count > a.granted {
		return false
	}
	a.ended, a.used = true, n.Count
	rs.endAsk(a)
	rs.grant()
	return true
}

func (rs *relays) askOf(i int32, serial uint32) *relayAsk {
	for k := range rs.asks {
		if a := &rs.asks[k]; a.open && a.from == i && a.serial == serial {
			return a
		}
	}
	return nil
}

// endAsk closes a request if all of its pieces are here.
func (rs *relays) endAsk(a *relayAsk) {
	if a.ended && a.received == a.used {
		rs.closeAsk(a)
	}
}

// closeAsk forgets a request, with the places that were granted and not used.
func (rs *relays) closeAsk(a *relayAsk) {
	for k := a.received; k != a.granted; k++ {
		rs.e.cfg.Store.put(a.places[k%relayGrants])
	}
	a.open = false
	rs.asked--
}

// spare reports whether this member's own traffic leaves its link room both ways.
func (rs *relays) spare() bool {
	out := rs.e.left+rs.e.others.left == 0 || rs.e.waiting.len() == 0 && rs.e.unused()
	return rs.e.cfg.Always || out && (rs.e.in.left+rs.e.others.inLeft == 0 || rs.e.in.idles)
}

// ungranted reports whether a request waits for a grant.
func (rs *relays) ungranted() bool {
	for k := range rs.asks {
		if rs.wants(&rs.asks[k]) {
			return true
		}
	}
	return false
}

// wants reports whether a piece more may be granted: one, and as many as the path to the target takes soon.
func (rs *relays) wants(a *relayAsk) bool {
	if !a.open || a.ended {
		return false
	}
	n := uint32(relayGrants)
	if soon := rs.e.at(a.target).rate * relaySoon.Seconds() / float64(rs.e.cfg.Piece); soon > 0 && soon < relayGrants {
		n = max(uint32(soon), 1)
	}
	return a.granted-a.passed < n
}

// grant grants pieces, one of each request after the other, while there is room.
func (rs *relays) grant() {
	if rs.asked == 0 || !rs.spare() {
		return
	}
	for granted := true; granted; {
		granted = false
		for k := range rs.asks {
			a := &rs.asks[k]
			if !rs.wants(a) {
				continue
			}
			place := rs.e.cfg.Store.take()
			if place < 0 {
				return
			}
			a.places[a.granted%relayGrants] = place
			a.granted++
			rs.note(a.from, Note{Kind: NoteGrant, Serial: a.serial, Count: a.granted})
			granted = true
		}
	}
}

// OnRelayed takes in n bytes of a piece that is to be passed on, and returns the place of the
// store in which the caller keeps them, at the offset that the piece says; below 0 for a request
// that is over: its bytes are dropped. It returns false if they were not granted or are not the
// next, which drops them, too.
func (e *Engine) OnRelayed(now congestion.Time, from int, c *Piece, n int64) (place int, ok bool) {
	i := int32(from)
	a := e.relays.askOf(i, c.Serial)
	if a == nil && e.relays.relaying() {
		e.report.Late++
		return -1, true
	}
	if !e.relays.relaying() || c.Third != a.target || a.received == a.granted || c.Offset != a.at ||
		c.Offset != 0 && c.Number != a.number || n <= 0 || n > e.cfg.Piece-c.Offset ||
		(int64(c.Number)+1)*e.cfg.Piece > c.Total || a.ended && a.received == a.used {
		e.report.Forged++
		return 0, false
	}
	place = int(a.places[a.received%relayGrants])
	a.number = c.Number
	if a.at += n; a.at < e.cfg.Piece {
		return place, true
	}
	a.at = 0
	a.received++
	e.relays.stored++
	onward := Piece{Total: c.Total, Number: c.Number, Third: e.relays.third(i, a.target)}
	e.relays.onward.push(Action{
		Kind: SendPiece, Peer: int(a.target), Piece: onward, Place: place, ask: a.serial, asker: i,
	})
	e.relays.endAsk(a)
	return place, true
}

// Passed takes in that a piece of the store is on its way to its target, or cannot get there.
// Its place is free.
func (e *Engine) Passed(a *Action) {
	e.cfg.Store.put(int32(a.Place))
	e.relays.stored--
	e.report.Carried += uint64(e.cfg.Piece)
	if q := e.relays.askOf(a.asker, a.ask); q != nil {
		q.passed++
	}
	e.relays.grant()
}
