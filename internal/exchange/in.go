package exchange

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// inPeer is what is received from a peer.
type inPeer struct {
	want, got int64 // got from its beginning on
	tail      inTail
	over      bool // everything is here
	begun     bool // something is here
	invite    bool // the next word is a credit
}

// inLink is what is received from all peers.
type inLink struct {
	e *Engine // which receives it; immutable

	waiting heap    // senders of which nothing is on its way, as far as is known, and that were not invited since
	begun   int     // senders that have begun and not ended
	rate    float64 // the most that arrived lately, bytes per second; 0: not known
	before  [3]span // the periods before, the last one first
	since   congestion.Time
	bytes   int64         // since then
	longest int64         // chunk that has arrived whole since then
	chunks  int           // that have ended since then
	least   time.Duration // of the delays that senders have seen since then
	busy    bool
	idles   bool   // in the last period
	left    int64  // bytes that have not arrived, but for those of members of the host
	all     int64  // of them at the start
	over    int    // peers of which everything is here
	got     uint64 // as in Use
}

// span is bytes that arrived in a time.
type span struct {
	bytes int64
	took  time.Duration
}

func (l *inLink) start(now congestion.Time) {
	l.before = [3]span{}
	l.begun, l.busy, l.idles, l.left = 0, false, false, 0
	l.count(now)
}

// count begins a period.
func (l *inLink) count(now congestion.Time) { l.since, l.bytes, l.longest, l.chunks = now, 0, 0, 0 }

// below reports whether less has arrived in a period than its link carries while it is not idle. A chunk that arrives
// whole counts when it is over, so one that is under way may be missing: four of them may count as three.
func (l *inLink) below(period time.Duration) bool {
	return float64(l.bytes+l.longest) < idle*l.rate*period.Seconds()
}

// expect takes in a peer at the start of an operation.
func (l *inLink) expect(i int32) {
	p := l.e.at(i)
	if p.lost {
		l.over++
		p.in.over = true
		return
	}
	if p.in.want > l.e.cfg.Short && !p.near {
		l.waiting.push(i, l.key(i, &p.in))
	}
}

// key is what a sender is invited by: the one with the longest remainder first, and among equals the last peer, for
// which this member is peer 0.
func (l *inLink) key(i int32, in *inPeer) uint64 {
	place := uint64(l.e.cfg.Peers) - 1 - uint64(i)
	return (mostMeasure-clampMeasure((in.want-in.got)/l.e.chunk))<<placeBits | place
}

// Arrived takes in bytes of a chunk that have arrived: n bytes at the offset off of the
// slice, and whether the chunk ends with them. It returns false if they are not those
// that come next, which drops them: the caller must not keep them.
func (e *Engine) Arrived(now congestion.Time, from int, c *Chunk, off, n int64, ends bool) bool {
	i, p := int32(from), e.known.find(int32(from))
	if p == nil {
		e.report.Forged++
		return false
	}
	in := &p.in
	if in.over || c.Total != in.want || off != in.got || n < 0 || n > in.want-in.tail.top()*e.cfg.Piece-off ||
		n == 0 && in.want != 0 {
		e.report.Forged++
		return false
	}
	e.relays.heard = now
	e.hear(i, p)
	in.got += n
	e.report.Received += n
	if !p.near {
		e.in.take(i, in, c, n, ends)
	}
	if (e.in.whole(now, i) || ends) && in.want > e.cfg.Short {
		e.speak(i)
	}
	e.in.tick(now)
	return true
}

// take takes in that n bytes have come over the link.
func (l *inLink) take(i int32, in *inPeer, c *Chunk, n int64, ends bool) {
	l.left -= n
	l.bytes += n
	l.got += uint64(n)
	if n == c.Length {
		l.longest = max(l.longest, n)
	}
	if in.want > l.e.cfg.Short {
		l.sends(i, in, ends)
	}
	if ends {
		if l.chunks == 0 || c.Delay < l.least {
			l.least = c.Delay
		}
		l.chunks++
	}
}

// sends takes in that bytes of a sender have come. At the end of a chunk it may be invited for the next one.
func (l *inLink) sends(i int32, in *inPeer, ends bool) {
	if !in.begun {
		in.begun = true
		l.begun++
	}
	is := l.waiting.has(i)
	switch {
	case ends && is:
		l.waiting.set(i, l.key(i, in))
	case ends:
		l.waiting.push(i, l.key(i, in))
	case is:
		l.waiting.remove(i)
	}
}

// whole takes in that everything of a peer is here, and reports whether it is.
func (l *inLink) whole(now congestion.Time, i int32) bool {
	p := l.e.at(i)
	in := &p.in
	if !l.e.Whole(int(i)) {
		return false
	}
	in.over = true
	l.over++
	if in.begun {
		l.begun--
	}
	if l.waiting.has(i) {
		l.waiting.remove(i)
	}
	p.stats.Received = now.Sub(l.e.started)
	return true
}

// Whole reports whether everything that a peer has for this member is here.
func (e *Engine) Whole(peer int) bool {
	p := e.known.find(int32(peer))
	return p != nil && p.in.got+p.in.tail.count()*e.cfg.Piece == p.in.want
}

// speak has a word be sent to a peer.
func (e *Engine) speak(i int32) {
	if !e.words.has(i) {
		e.words.push(i)
	}
}

// word makes the word for a peer.
func (l *inLink) word(i int32) Word {
	in := &l.e.at(i).in
	w := Word{Got: in.got, Invite: in.invite, Busy: l.busy, Idle: l.idles, Low: in.tail.low, Have: in.tail.have}
	if w.Rested = l.rate > 0; w.Rested {
		w.Rest = time.Duration(float64(l.left+l.e.others.inLeft) / l.rate * second)
	}
	in.invite = false
	return w
}

// forget stops waiting for a peer that is lost, and returns whether something of it
// is missing.
func (l *inLink) forget(i int32) bool {
	p := l.e.at(i)
	in := &p.in
	if in.over || l.over == l.e.cfg.Peers {
		return false
	}
	if !p.near {
		l.left -= in.want - in.got - in.tail.count()*l.e.cfg.Piece
	}
	in.over = true
	l.over++
	if in.begun {
		l.begun--
	}
	if l.waiting.has(i) {
		l.waiting.remove(i)
	}
	return true
}

// carried takes in what arrived in a period. What a host that did not run for a while finds at once has come while it
// did not, and a bucket that is full lets through at once what it has: the link carries what a few periods say
// together.
func (l *inLink) carried(now span) {
	all := now
	for _, s := range l.before {
		all.bytes += s.bytes
		all.took += s.took
	}
	l.before = [3]span{now, l.before[0], l.before[1]}
	if rate := float64(all.bytes) * second / float64(max(all.took, 1)); rate > l.rate {
		l.rate = rate
	} else {
		l.rate -= l.rate / 64
	}
}

// period is for how long arrivals are counted.
func (l *inLink) period() time.Duration {
	d := l.e.patient()
	if l.rate > 0 {
		d = max(d, time.Duration(4*float64(l.e.chunk)/l.rate*second))
	}
	return d
}

// unserved reports whether nothing is known of the own link, nothing arrives, and no sender was invited in this
// operation: where a member exchanges with some of the others only, none of them may begin with it by itself.
func (l *inLink) unserved() bool { return l.rate == 0 && l.bytes == 0 && l.e.report.Invited == 0 }

// wake is when the period ends, if there is a sender to invite then.
func (l *inLink) wake() (congestion.Time, bool) {
	if l.waiting.len() == 0 || l.rate == 0 && !l.unserved() {
		return 0, false
	}
	return l.since.Add(l.period()), true
}

// tick judges the arrivals of a period, and invites a sender if the own link had room.
func (l *inLink) tick(now congestion.Time) {
	took := now.Sub(l.since)
	if took < l.period() {
		return
	}
	l.carried(span{l.bytes, took})
	idles := l.below(took) || l.unserved()
	l.busy = idles && l.begun > 1 && l.chunks > 1 && l.least > l.e.cfg.Threshold+l.e.queue
	l.idles = idles
	turn := l.e.turn()
	l.count(now)
	if idles && !l.busy && l.waiting.len() != 0 && turn {
		i, _ := l.waiting.least()
		l.waiting.remove(i)
		l.e.at(i).in.invite = true
		l.e.report.Invited++
		l.e.speak(i)
	}
}
