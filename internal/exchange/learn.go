package exchange

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// remembers is for how long what is known of slow paths counts from the start of an operation on.
const remembers = time.Minute

// idling is what a path has delivered since its target's link idles: that is not what holds it back then.
type idling struct {
	from  congestion.Time
	acked int64 // by then
}

// watch takes in whether a target's link idles, before what its word acknowledges.
func (p *peer) watch(now congestion.Time, idle bool) {
	if idle && !p.idle {
		p.idling = idling{now, p.acked}
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

// knownSlow reports whether a path counts as slow when an operation starts, by what the ones before have seen.
func (e *Engine) knownSlow(now congestion.Time, p *peer) bool {
	return (p.tail != 0 || p.learnt != 0 && now.Sub(p.learnt) < remembers) && e.narrow(p)
}
