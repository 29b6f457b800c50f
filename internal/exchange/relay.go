package exchange

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// Limits of relays.
const (
	// Window is how many pieces of a slice are on their way at most, from the first that has
	// not arrived on: as many as a [Word] has bits for.
	relayWindow = 64
	// relayPairs are the slices of which a member sends pieces at a time, and relayMost the
	// relays of each.
	relayPairs = 8
	relayMost  = 4
	// relayAsks are the requests that a relay has accepted at a time, and relayGrants the pieces of one
	// that it has granted and not passed on.
	relayAsks   = 16
	relayGrants = 4
	// relaySoon is what the pieces that a relay has granted take on its path to the target, if that is more than
	// one: the last ones of an operation wait no longer there.
	relaySoon = 16 * time.Millisecond
	// relayTries are the members that are considered at a time.
	relayTries = 16
	// relaySlow is how many times faster a relay's path has to be than the direct one.
	relaySlow = 2
	// relayedTime is what a chunk takes at most on a path that relays help.
	relayedTime = 8 * time.Millisecond
	// relayPatience is when a piece that has not arrived is sent again.
	relayPatience = 2 * time.Second
)

// Where a piece is, beside the number of the relay that it went to.
const (
	viaNone   = -1 // nowhere: it has to be sent again
	viaDirect = -2
)

// relays are an engine's in all three parts: as a source, as a relay and as a target. They have the engine's paths, its
// lists and its report. A request is named by a serial number
// of its source, so that answers to an earlier one are recognised.
type relays struct {
	e *Engine // which has them; immutable

	serial uint32
	notes  queue[Action] // requests and what is said about them
	pieces queue[Action] // own ones to be sent
	onward queue[Action] // others' to be passed on

	width int // the most pairs of this host at a time in the operation before
	most  int // and in this one
	// heard is when a peer's word, bytes or piece came last: the end of the operation, once it is over.
	heard congestion.Time

	pairs [relayPairs]relayPair // as a source
	open  int                   // of them

	asks   [relayAsks]relayAsk // as a relay
	asked  int                 // of them
	stored int                 // pieces that have not been passed on
}

// queue is a queue that keeps its memory.
type queue[T any] struct {
	items []T
	taken int
}

func (q *queue[T]) push(v T) { q.items = append(q.items, v) }

func (q *queue[T]) pop() (v T, ok bool) {
	if q.taken == len(q.items) {
		return v, false
	}
	v = q.items[q.taken]
	if q.taken++; q.taken == len(q.items) {
		q.clear()
	}
	return v, true
}

func (q *queue[T]) clear() { q.items, q.taken = q.items[:0], 0 }

func (q *queue[T]) empty() bool { return q.taken == len(q.items) }

// third is the number that a peer has for another peer, which is not the same one.
func (rs *relays) third(other, at int32) int32 {
	n := int32(rs.e.cfg.Peers) + 1
	return (other - at - 1 + n) % n
}

// relaying reports whether this member may relay and have pieces relayed.
func (rs *relays) relaying() bool { return rs.e.cfg.Store != nil && rs.e.cfg.Peers >= 3 }

// stop drops everything about relays.
func (rs *relays) stop() {
	for i := range rs.asks {
		if a := &rs.asks[i]; a.open {
			rs.closeAsk(a)
		}
	}
	for a, ok := rs.onward.pop(); ok; a, ok = rs.onward.pop() {
		rs.e.cfg.Store.put(int32(a.Place))
	}
	rs.notes.clear()
	rs.pieces.clear()
	rs.stored, rs.open = 0, 0
	for i := range rs.pairs {
		rs.pairs[i].open = false
	}
}

// done reports whether nothing is to be sent for relays.
func (rs *relays) done() bool {
	return rs.open == 0 && rs.asked == 0 && rs.stored == 0 && rs.notes.empty() && rs.pieces.empty()
}

// Stop ends an operation that is not to go on: places of the store are free again, but for those
// of pieces that the caller has from [Engine.Next] and has not given back by [Engine.Passed].
func (e *Engine) Stop() { e.relays.stop() }

// OnNote takes in what a peer says about relays. It returns false if no member says that, which
// drops it.
func (e *Engine) OnNote(now congestion.Time, from int, n Note) bool {
	i := int32(from)
	ok := e.relays.relaying() && !e.at(i).absent()
	switch {
	case !ok:
	case n.Kind == NoteAsk:
		ok = e.relays.onAsk(i, &n)
	case n.Kind == NoteEnd:
		ok = e.relays.onEnd(i, &n)
	default:
		ok = e.relays.onAnswer(now, i, &n)
	}
	if !ok {
		e.report.Forged++
	}
	e.fill(now)
	return ok
}

// absent reports whether a peer takes nothing more.
func (p *peer) absent() bool { return p.lost || p.away }

// Gone takes in that a peer which the operation does not need is not there any more.
func (e *Engine) Gone(now congestion.Time, peer int) {
	if p := e.known.find(int32(peer)); p != nil {
		p.away = true
	} else {
		e.known.marks[peer] |= markAway
	}
	e.relays.lost(now, int32(peer))
	e.fill(now)
}

// lost takes in that a peer neither relays nor sends nor takes anything more.
func (rs *relays) lost(now congestion.Time, i int32) {
	if !rs.relaying() {
		return
	}
	for k := range rs.asks {
		a := &rs.asks[k]
		if !a.open || a.from != i && a.target != i {
			continue
		}
		if a.target == i {
			rs.note(a.from, Note{Kind: NoteRefuse, Serial: a.serial})
		}
		rs.closeAsk(a)
	}
	for k := range rs.pairs {
		switch p := &rs.pairs[k]; {
		case !p.open:
		case p.target == i:
			rs.closePair(p)
		default:
			rs.takeBack(now, p, i)
		}
	}
	rs.dropTo(&rs.notes, i)
	rs.dropTo(&rs.pieces, i)
	rs.dropTo(&rs.onward, i)
}

// dropTo drops what is for a peer.
func (rs *relays) dropTo(q *queue[Action], i int32) {
	kept := q.items[:0]
	for _, a := range q.items[q.taken:] {
		if int32(a.Peer) != i {
			kept = append(kept, a)
		} else if a.Kind == SendPiece && a.Place >= 0 {
			rs.e.cfg.Store.put(int32(a.Place))
			rs.stored--
		}
	}
	q.items, q.taken = kept, 0
}

// note has something be said to a peer about relays.
func (rs *relays) note(to int32, n Note) {
	if rs.e.at(to).absent() {
		return
	}
	rs.notes.push(Action{Kind: SendNote, Peer: int(to), Note: n, Place: -1})
}

// tick takes in that time has passed.
func (rs *relays) tick(now congestion.Time) {
	for k := range rs.pairs {
		if p := &rs.pairs[k]; p.open {
			rs.overduePieces(now, p)
			rs.goOnPair(now, p)
		}
	}
	rs.grant()
}

// wake is when [Engine.Tick] is to be called for relays, or false.
func (rs *relays) wake() (at congestion.Time, ok bool) {
	for k := range rs.pairs {
		if p := &rs.pairs[k]; p.open {
			if due, is := p.due(); is && (!ok || due < at) {
				at, ok = due, true
			}
		}
	}
	if rs.asked != 0 && rs.ungranted() {
		if due := rs.e.in.since.Add(rs.e.in.period()); !ok || due < at {
			at, ok = due, true
		}
	}
	return at, ok
}
