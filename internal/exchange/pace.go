package exchange

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// paceChunks is how many chunks a burst has at least.
const paceChunks = 8

// pace keeps what a member sends below a share of its link, [Config.Percent]: chunks and pieces go in bursts, and a
// pause after each makes up for what it was faster. What the link carries is measured within bursts, or the share
// would become one of itself.
type pace struct {
	number uint32 // of the burst
	sent   int64  // bytes of it
	began  congestion.Time
	until  congestion.Time // end of the pause after it
	paused bool            // there is one, and nothing has been sent since
}

// pausing reports whether chunks and pieces have to wait, until pace.until.
func (e *Engine) pausing(now congestion.Time) bool { return e.pace.paused && now < e.pace.until }

// paced takes in that so many bytes are sent.
func (e *Engine) paced(now congestion.Time, bytes int64) {
	p := &e.pace
	if e.cfg.Percent == 100 {
		return
	}
	switch {
	case p.paused:
		*p = pace{number: p.number + 1, began: now}
		e.ackedAt = now // the pause does not count
	case p.sent == 0:
		p.began = now
	}
	p.sent += bytes
	if p.sent < paceChunks*e.chunk || e.rate == 0 {
		return
	}
	p.until = p.began.Add(e.sparing(e.airtime(p.sent)) * time.Duration(1+e.others.ranks))
	if p.paused = p.until > now; !p.paused {
		p.sent = 0
	}
}

// sparing is what takes d on the own link, at the share of it that may be used.
func (e *Engine) sparing(d time.Duration) time.Duration {
	if e.cfg.Percent == 100 {
		return d
	}
	return time.Duration(float64(d) * 100 / float64(e.cfg.Percent))
}

// wakePace is when the pause ends, if something waits for that.
func (e *Engine) wakePace() (congestion.Time, bool) {
	waits := e.emits.count != 0 || !e.relays.pieces.empty() || !e.relays.onward.empty()
	return e.pace.until, e.pace.paused && waits
}
