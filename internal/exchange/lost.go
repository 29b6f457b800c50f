package exchange

import "github.com/weft-fabric/weft/internal/congestion"

// Needs reports whether something is to be sent to a peer, acknowledged by it or received from it.
func (e *Engine) Needs(peer int) bool {
	p := e.known.find(int32(peer))
	if p == nil {
		return false
	}
	return e.outOver < e.cfg.Peers && !p.over || e.in.over < e.cfg.Peers && !p.in.over
}

// Lost takes in that a peer is gone, and returns whether the operation, if any, still
// needs it. What others have for this member can be received nevertheless.
func (e *Engine) Lost(now congestion.Time, peer int) (needed bool) {
	i, p := int32(peer), e.known.find(int32(peer))
	if e.gone(i) {
		return false
	}
	if p == nil {
		e.known.marks[i] |= markLost
		return false
	}
	p.lost = true
	if !p.over && e.outOver < e.cfg.Peers {
		needed = true
		if e.waiting.has(i) {
			e.unwait(i)
		}
		if !p.near {
			e.left -= p.left()
			e.given -= uint64(p.sent - p.acked)
			e.flying -= int(p.flying)
			if p.flying != 0 {
				e.active--
			}
		}
		e.known.putAir(p)
		p.flying = 0
		e.emits.remove(i)
		e.nears.remove(i)
		e.sentAll(i, p)
	}
	if e.in.forget(i) {
		needed = true
	}
	e.words.remove(i)
	e.relays.lost(now, i)
	e.failed = e.failed || needed
	e.fill(now)
	return needed
}
