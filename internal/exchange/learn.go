package exchange

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// remembers is for how long what is known of slow paths counts from the start of an operation on.
const remembers = time.Minute

// since is a time, and what a path had delivered by then.
type since struct {
	from  congestion.Time
	acked int64
}

// rounds are chunks of a pair of which each was sent when the one before had been acknowledged.
type rounds struct {
	number int
	ended  congestion.Time // the last of them
	first  since           // from the end of the first of them on
}

// take takes in that a chunk that was sent at a time has been acknowledged, and reports whether it is a new round.
func (r *rounds) take(now, sent congestion.Time, acked int64) bool {
	if sent < r.ended {
		return false
	}
	if r.number == 0 {
		r.first = since{now, acked}
	}
	r.number++
	r.ended = now
	return true
}

// pooled is what all pairs deliver together.
type pooled struct {
	rate    float64       // smoothed, bytes per second; 0: not known
	slowest time.Duration // the longest that chunks took lately
}

// take takes in what was delivered while a chunk was on its way, which took a time, from the acknowledgement before it
// on. Where acknowledgements wait for each other or behind data, those of chunks that have been on their way for long
// come together with its own: what is delivered in much less than the longest that one took lately says nothing. It
// does not take all of that time, or the link would seem to carry no more than what it delivers while some targets'
// ports queue.
func (p *pooled) take(rate float64, within, took time.Duration) {
	p.slowest = max(p.slowest-p.slowest/8, took)
	switch {
	case p.rate == 0:
		p.rate = rate
	case within >= p.slowest/8:
		p.rate += (rate - p.rate) / 4
	}
}

// watch takes in whether a target's link idles, before what its word acknowledges: that is not what holds the path back
// then.
func (p *peer) watch(now congestion.Time, idle bool) {
	if idle && !p.idle {
		p.idling = since{now, p.acked}
	}
	p.idle = idle
}

// learn takes in that a slice has arrived. A path that was slow although its target's link idled is slow for the next
// operation, too: also if nothing went through relays in this one, because all had been given to the transport before
// the path was seen to be slow. What it delivered before may have come from a full bucket. Time in which a pair waited
// at its own host is none of its path: nothing is learnt of one that gave way to others, nor where a share of the link
// makes pauses, as all of a slice is not given to the transport then.
func (e *Engine) learn(now congestion.Time, p *peer) {
	first := e.started.Add(p.stats.First)
	bytes, took := p.acked-p.idling.acked, now.Sub(max(p.idling.from, first))
	waited := p.stats.Deferrals != 0 || e.cfg.Percent != 100
	if p.near || !p.idle || waited || bytes < e.chunk || took <= 0 {
		return
	}
	before := p.rate
	if p.rate = float64(bytes) * second / float64(took); e.narrow(p) {
		p.learnt = now
	} else {
		p.rate = before
	}
}

// knownSlow reports whether a path counts as slow when an operation starts, by what the ones before have seen: the one
// just before by its relays.
func (e *Engine) knownSlow(now congestion.Time, p *peer) bool {
	relayed := p.tail != 0 && now.Sub(e.relays.heard) < remembers
	return (relayed || p.learnt != 0 && now.Sub(p.learnt) < remembers) && e.narrow(p)
}
