package exchange

import (
	"math/bits"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// relayPair is a slice with an end that goes through relays, in pieces: number 0 is the slice's last, number 1
// is before it, and so on. Bit k of have is piece low + k; pieces below low have arrived.
type relayPair struct {
	open      bool
	target    int32
	low, next uint32 // pieces below next were taken from the slice
	have      uint64
	via       [relayWindow]int32           // by number modulo the window
	at        [relayWindow]congestion.Time // when it was sent
	helpers   [relayMost]relayHelper
	from      int32 // peer that is considered next
}

// relayHelper is a relay that was asked.
type relayHelper struct {
	open    bool
	peer    int32
	serial  uint32
	granted uint32 // pieces, in all
	used    uint32
}

// late reports whether a pair would end later than both of its hosts for so much longer that
// relays pay: both have room, and it is the path that holds it back.
func (rs *relays) late(p *peer) bool {
	switch {
	case rs.e.cfg.Always:
		return p.acked != 0 && !p.lost && !p.over && p.left() > rs.e.cfg.Piece
	case p.lost || p.over || p.busy || p.alone || p.acked == 0 || p.rounds.number < 2 && !p.slow ||
		!p.rested || p.rate <= 0 || rs.e.rate <= 0:
		return false
	case p.left() <= rs.e.cfg.Piece || !rs.e.slow(p) || !rs.e.narrow(p):
		return false
	}
	return p.needs() > p.lateness()*rs.e.hosts(p)+8*rs.e.airtime(rs.e.chunk)+rs.e.patient()
}

// lateness is how many times what its hosts need a pair has to take for relays to pay. As long as its target's link
// does not idle, that may be what holds the pair back, and relays would wait at the same port.
func (p *peer) lateness() time.Duration {
	if p.idle {
		return 4
	}
	return 8
}

// wary reports whether a pair's path is so slow that the end of its slice may go through relays: not
// all of it is given to the transport then, from where it does not come back.
func (e *Engine) wary(p *peer) bool {
	return !p.alone && e.narrow(p) && e.lags(p)
}

// lags reports whether a pair may end later than both of its hosts, by a quarter. One whose target's link takes as long
// for all that it has to receive does not, however slow its path seems: it has its part of that link.
func (e *Engine) lags(p *peer) bool { return !p.rested || 4*p.needs() > 5*e.hosts(p) }

// narrow reports whether a path carries much less than its part of the host's link with the most pairs at a time.
func (e *Engine) narrow(p *peer) bool {
	parts := float64(relaySlow * max(e.relays.width, e.relays.most, relaySlow))
	return e.relays.relaying() && p.rate > 0 && p.rate*parts < e.rate
}

// drains is what a chunk may take on a path that relays may help, by what the hosts of the pair need. What is on its
// way cannot take another path, but that is no loss while it ends before both hosts do, and a pair that has little on
// its way gets little of a link that others fill.
func drains(hosts time.Duration) time.Duration { return max(relayedTime, hosts/(2*Early)) }

// relayedChunk is the most bytes of a chunk if the end of a slice may go through relays.
func (e *Engine) relayedChunk(p *peer) int64 {
	least, most := max(e.cfg.Chunk/16, 1), e.chunk
	switch {
	case p.relayed || p.slow:
		if p.step == 0 {
			p.step = int64(p.rate * drains(e.hosts(p)).Seconds())
		}
		p.step = min(max(p.step, least), most)
		return p.step
	case e.wary(p):
		return min(max(int64(p.rate*drains(e.hosts(p)).Seconds()), least, most/4), most)
	}
	return most
}

// rated takes in what a path delivered while a chunk was on its way. Acknowledgements may come together for all that
// is: the rate is lowered once for what was on its way at a time. Short chunks may go through at once where the path
// has been idle, so that those of slow paths count together.
func (e *Engine) rated(now congestion.Time, p *peer, f *flight, share float64) {
	again := p.rounds.take(now, f.at, p.acked)
	if !p.relayed && !p.slow {
		if again || share > p.rate {
			p.rate = max(share, p.rate*7/8)
		}
		return
	}
	switch took, most := now.Sub(f.at), drains(e.hosts(p)); {
	case took < most/2:
		p.step *= 2
	case took > most:
		p.step /= 2
	}
	if bytes := p.acked - p.rounds.first.acked; bytes >= e.cfg.Chunk/4 {
		p.rate = float64(bytes) * second / float64(max(now.Sub(p.rounds.first.from), 1))
		p.slow = p.slow && e.narrow(p) && e.lags(p)
	}
}

// slow reports whether a path carries much less than its part of the own link.
func (e *Engine) slow(p *peer) bool {
	return p.rate*float64(relaySlow*max(e.active+e.others.active, 1)) < e.rate
}

// needs is what the rest of a pair takes at the rate of its path.
func (p *peer) needs() time.Duration {
	return time.Duration(float64(p.total-p.tail-p.acked) / p.rate * second)
}

// hosts is when both hosts of a pair could have sent and received everything.
func (e *Engine) hosts(p *peer) time.Duration {
	return max(e.sparing(e.airtime(e.out-e.acked+e.others.left+e.others.flying)), p.rest)
}

// pays reports whether one piece more through a relay ends before it would on the pair's own path.
func (rs *relays) pays(p *peer) bool {
	if rs.e.cfg.Always {
		return p.left() > rs.e.cfg.Piece
	}
	return p.left() > rs.e.cfg.Piece && p.needs() > rs.e.hosts(p)+4*rs.e.airtime(rs.e.cfg.Piece)
}

// pairOf is a slice's entry, nil: it has none.
func (rs *relays) pairOf(i int32) *relayPair {
	if rs.open == 0 {
		return nil
	}
	for k := range rs.pairs {
		if p := &rs.pairs[k]; p.open && p.target == i {
			return p
		}
	}
	return nil
}

// start begins to send a pair's end through relays if that pays.
func (rs *relays) start(now congestion.Time, i int32) {
	p := rs.e.at(i)
	if !rs.relaying() || p.near {
		return
	}
	r := rs.pairOf(i)
	if r == nil && rs.open < relayPairs && rs.late(p) {
		for k := range rs.pairs {
			if r = &rs.pairs[k]; !r.open {
				break
			}
		}
		number := uint32(p.tail / rs.e.cfg.Piece)
		*r = relayPair{open: true, target: i, from: i, low: number, next: number}
		rs.open++
		p.relayed = true
	}
	if r != nil {
		rs.goOnPair(now, r)
	}
}

// goOnPair sends the pieces for which there are grants, asks for more relays, and ends what
// has come to its end.
func (rs *relays) goOnPair(now congestion.Time, r *relayPair) {
	p := rs.e.at(r.target)
	more := rs.pays(p)
	again := r.again()
	if !more && again == 0 {
		r.end(rs)
		if r.low == r.next {
			rs.closePair(r)
		}
		return
	}
	for k := range r.helpers {
		h := &r.helpers[k]
		for h.open && h.used < h.granted {
			number, ok := rs.nextPiece(r, p)
			if !ok {
				break
			}
			h.used++
			rs.sendPiece(now, r, p, number, h)
		}
	}
	if more = rs.pays(p); more {
		rs.ask(r, p)
	}
	switch again = r.again(); {
	case again != 0:
		rs.direct(now, r, p)
	case r.helped():
	case r.low == r.next:
		p.alone, p.slow = true, false // no member helps
		rs.closePair(r)
	}
}

// again is how many pieces have to be sent again.
func (r *relayPair) again() (n int) {
	for k := r.low; k < r.next; k++ {
		if r.via[k%relayWindow] == viaNone && !r.has(k) {
			n++
		}
	}
	return n
}

// has reports whether a piece has arrived.
func (r *relayPair) has(number uint32) bool {
	return number < r.low || number-r.low < relayWindow && r.have>>(number-r.low)&1 != 0
}

// helped reports whether a relay is to pass on or may grant pieces.
func (r *relayPair) helped() bool {
	for k := range r.helpers {
		if r.helpers[k].open {
			return true
		}
	}
	return false
}

// nextPiece chooses a piece: one that has to be sent again, or one more of the slice.
func (rs *relays) nextPiece(r *relayPair, p *peer) (uint32, bool) {
	for k := r.low; k < r.next; k++ {
		if r.via[k%relayWindow] == viaNone && !r.has(k) {
			rs.e.report.Again++
			return k, true
		}
	}
	if !rs.pays(p) || r.next-r.low >= relayWindow {
		return 0, false
	}
	number := r.next
	r.next++
	p.tail += rs.e.cfg.Piece
	rs.e.left -= rs.e.cfg.Piece
	if rs.e.waiting.has(r.target) {
		rs.e.waiting.set(r.target, rs.e.key(r.target))
	}
	return number, true
}

// sendPiece sends a piece through a relay, nil: directly.
func (rs *relays) sendPiece(now congestion.Time, r *relayPair, p *peer, number uint32, h *relayHelper) {
	c := Piece{Total: p.total, Number: number, Third: Own}
	to := r.target
	if h != nil {
		to = h.peer
		c.Hop, c.Serial, c.Third = true, h.serial, rs.third(r.target, to)
		r.via[number%relayWindow] = to
		rs.e.report.Relayed += uint64(rs.e.cfg.Piece)
	} else {
		r.via[number%relayWindow] = viaDirect
	}
	r.at[number%relayWindow] = now
	rs.pieces.push(Action{Kind: SendPiece, Peer: int(to), Piece: c, Slice: int(r.target), Place: -1})
}

// direct sends pieces again that no relay takes, a few at a time.
func (rs *relays) direct(now congestion.Time, r *relayPair, p *peer) {
	flying := 0
	for k := r.low; k < r.next; k++ {
		if r.via[k%relayWindow] == viaDirect && !r.has(k) {
			flying++
		}
	}
	for k := r.low; k < r.next && flying < Early; k++ {
		if r.via[k%relayWindow] == viaNone && !r.has(k) {
			rs.sendPiece(now, r, p, k, nil)
			rs.e.report.Again++
			flying++
		}
	}
}

// ask asks members for help, as far as it lacks: those with faster paths that have begun.
func (rs *relays) ask(r *relayPair, p *peer) {
	n := int32(rs.e.cfg.Peers)
	for range min(relayTries, n) {
		h := r.place()
		if h == nil {
			return
		}
		r.from = (r.from + 1) % n
		i := r.from
		if rs.e.known.find(i) == nil && !rs.e.cfg.Always {
			continue // nothing is known of its path
		}
		m := rs.e.at(i)
		slow := m.rate < relaySlow*p.rate && rs.e.slow(m) && !rs.e.cfg.Always
		if i == r.target || m.near || m.absent() || m.busy || m.refused == r.target+1 || !m.heard || slow || r.uses(i) {
			continue
		}
		rs.serial++
		*h = relayHelper{open: true, peer: i, serial: rs.serial}
		rs.e.report.Asked++
		rs.note(i, Note{Kind: NoteAsk, Serial: h.serial, Third: rs.third(r.target, i), Rate: p.rate})
	}
}

// place is a free place for a relay, nil: there are enough.
func (r *relayPair) place() *relayHelper {
	for k := range r.helpers {
		if !r.helpers[k].open {
			return &r.helpers[k]
		}
	}
	return nil
}

// uses reports whether a peer is a relay of the pair.
func (r *relayPair) uses(i int32) bool {
	for k := range r.helpers {
		if r.helpers[k].open && r.helpers[k].peer == i {
			return true
		}
	}
	return false
}

// onAnswer takes in a relay's grant or refusal. One for a request that is over does nothing.
func (rs *relays) onAnswer(now congestion.Time, i int32, n *Note) bool {
	if n.Serial > rs.serial {
		return false
	}
	for k := range rs.pairs {
		r := &rs.pairs[k]
		for j := range r.helpers {
			h := &r.helpers[j]
			if !r.open || !h.open || h.peer != i || h.serial != n.Serial {
				continue
			}
			switch {
			case n.Kind == NoteRefuse:
				rs.e.report.Refused++
				rs.e.at(i).refused = r.target + 1
				rs.takeBack(now, r, i)
			case n.Count < h.granted || n.Count > h.used+relayGrants:
				return false
			default:
				h.granted = n.Count
			}
			rs.goOnPair(now, r)
			return true
		}
	}
	return true
}

// takeBack has the pieces of a relay be sent again, and forgets it.
func (rs *relays) takeBack(now congestion.Time, r *relayPair, i int32) {
	for k := range r.helpers {
		if h := &r.helpers[k]; h.open && h.peer == i {
			h.open = false
		}
	}
	back := false
	for k := r.low; k < r.next; k++ {
		if r.via[k%relayWindow] == i && !r.has(k) {
			r.via[k%relayWindow], back = viaNone, true
		}
	}
	if back {
		rs.goOnPair(now, r)
	}
}

// end ends all requests of a pair.
func (r *relayPair) end(rs *relays) {
	for k := range r.helpers {
		if h := &r.helpers[k]; h.open {
			h.open = false
			rs.note(h.peer, Note{Kind: NoteEnd, Serial: h.serial, Count: h.used})
		}
	}
}

// closePair forgets that a slice went through relays.
func (rs *relays) closePair(r *relayPair) {
	r.end(rs)
	r.open = false
	rs.open--
	rs.e.at(r.target).relayed = false
}

// arrivedAt takes in what a target says of a slice's pieces. It returns false if that cannot be true.
func (rs *relays) arrivedAt(i int32, w *Word) bool {
	r := rs.pairOf(i)
	p := rs.e.at(i)
	if p.tail == 0 {
		return w.Low == 0 && w.Have == 0
	}
	sent := uint32(p.tail / rs.e.cfg.Piece)
	if w.Low > sent || w.Have != 0 && uint32(bits.Len64(w.Have)) > sent-w.Low {
		return false
	}
	if r == nil || w.Low < r.low {
		return true // late
	}
	before := int64(r.low) + int64(bits.OnesCount64(r.have))
	r.have = r.have>>(w.Low-r.low) | w.Have
	r.low = w.Low
	n := (int64(r.low) + int64(bits.OnesCount64(r.have)) - before) * rs.e.cfg.Piece
	rs.e.given += uint64(n)
	rs.e.delivered(n)
	return true
}

// arrivedAll reports whether a target has all of its slice.
func (rs *relays) arrivedAll(i int32, p *peer) bool {
	if p.acked+p.tail != p.total {
		return false
	}
	r := rs.pairOf(i)
	return r == nil || r.low == r.next
}

// overduePieces has pieces be sent again that have been on their way for too long.
func (rs *relays) overduePieces(now congestion.Time, r *relayPair) {
	for k := r.low; k < r.next; k++ {
		if v := r.via[k%relayWindow]; v >= 0 && !r.has(k) && now.Sub(r.at[k%relayWindow]) >= relayPatience {
			r.via[k%relayWindow] = viaNone
		}
	}
}

// due is when the first piece has been on its way for too long, false: there is none.
func (r *relayPair) due() (at congestion.Time, ok bool) {
	for k := r.low; k < r.next; k++ {
		if due := r.at[k%relayWindow].Add(relayPatience); r.via[k%relayWindow] >= 0 && !r.has(k) && (!ok || due < at) {
			at, ok = due, true
		}
	}
	return at, ok
}
