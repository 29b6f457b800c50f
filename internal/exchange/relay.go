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

// relays is what an engine has for relays in all three parts. A request is named by a serial number
// of its source, so that answers to an earlier one are recognised.
type relays struct {
	serial uint32
	notes  queue[Action] // requests and what is said about them
	pieces queue[Action] // own ones to be sent
	onward queue[Action] // others' to be passed on

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
func (e *Engine) third(other, at int32) int32 {
	n := int32(e.cfg.Peers) + 1
	return (other - at - 1 + n) % n
}

// relaying reports whether this member may relay and have pieces relayed.
func (e *Engine) relaying() bool { return e.cfg.Store != nil && e.cfg.Peers >= 3 }

// stopRelays drops everything about relays.
func (e *Engine) stopRelays() {
	r := &e.relays
	for i := range r.asks {
		if a := &r.asks[i]; a.open {
			e.closeAsk(a)
		}
	}
	for a, ok := r.onward.pop(); ok; a, ok = r.onward.pop() {
		e.cfg.Store.put(int32(a.Place))
	}
	r.notes.clear()
	r.pieces.clear()
	r.stored, r.open = 0, 0
	for i := range r.pairs {
		r.pairs[i].open = false
	}
}

// relaysDone reports whether nothing is to be sent for relays.
func (r *relays) done() bool {
	return r.open == 0 && r.asked == 0 && r.stored == 0 && r.notes.empty() && r.pieces.empty()
}

// Stop ends an operation that is not to go on: places of the store are free again, but for those
// of pieces that the caller has from [Engine.Next] and has not given back by [Engine.Passed].
func (e *Engine) Stop() { e.stopRelays() }

// OnNote takes in what a peer says about relays. It returns false if no member says that, which
// drops it.
func (e *Engine) OnNote(now congestion.Time, from int, n Note) bool {
	i := int32(from)
	ok := e.relaying() && !e.at(i).absent()
	switch {
	case !ok:
	case n.Kind == NoteAsk:
		ok = e.onAsk(i, &n)
	case n.Kind == NoteEnd:
		ok = e.onEnd(i, &n)
	default:
		ok = e.onAnswer(now, i, &n)
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
	e.relayLost(now, int32(peer))
	e.fill(now)
}

// relayLost takes in that a peer neither relays nor sends nor takes anything more.
func (e *Engine) relayLost(now congestion.Time, i int32) {
	if !e.relaying() {
		return
	}
	r := &e.relays
	for k := range r.asks {
		a := &r.asks[k]
		if !a.open || a.from != i && a.target != i {
			continue
		}
		if a.target == i {
			e.note(a.from, Note{Kind: NoteRefuse, Serial: a.serial})
		}
		e.closeAsk(a)
	}
	for k := range r.pairs {
		switch p := &r.pairs[k]; {
		case !p.open:
		case p.target == i:
			e.closePair(p)
		default:
			e.takeBack(now, p, i)
		}
	}
	e.dropTo(&r.notes, i)
	e.dropTo(&r.pieces, i)
	e.dropTo(&r.onward, i)
}

// dropTo drops what is for a peer.
func (e *Engine) dropTo(q *queue[Action], i int32) {
	kept := q.items[:0]
	for _, a := range q.items[q.taken:] {
		if int32(a.Peer) != i {
			kept = append(kept, a)
		} else if a.Kind == SendPiece && a.Place >= 0 {
			e.cfg.Store.put(int32(a.Place))
			e.relays.stored--
		}
	}
	q.items, q.taken = kept, 0
}

// note has something be said to a peer about relays.
func (e *Engine) note(to int32, n Note) {
	if e.at(to).absent() {
		return
	}
	e.relays.notes.push(Action{Kind: SendNote, Peer: int(to), Note: n, Place: -1})
}

// tickRelays takes in that time has passed.
func (e *Engine) tickRelays(now congestion.Time) {
	r := &e.relays
	for k := range r.pairs {
		if p := &r.pairs[k]; p.open {
			e.overduePieces(now, p)
			e.goOnPair(now, p)
		}
	}
	e.grant()
}

// wakeRelays is when [Engine.Tick] is to be called for relays, or false.
func (e *Engine) wakeRelays() (at congestion.Time, ok bool) {
	r := &e.relays
	for k := range r.pairs {
		if p := &r.pairs[k]; p.open {
			if due, is := p.due(); is && (!ok || due < at) {
				at, ok = due, true
			}
		}
	}
	if r.asked != 0 && e.ungranted() {
		if due := e.in.since.Add(e.period()); !ok || due < at {
			at, ok = due, true
		}
	}
	return at, ok
}
