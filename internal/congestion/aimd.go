package congestion

import "time"

// aimd is additive increase, multiplicative decrease on round-trip times.
type aimd struct {
	limits    Limits
	target    time.Duration
	least     time.Duration // excess that counts as congestion at least
	window    int64
	credit    int64 // acknowledged bytes that have not yet added up to a unit
	threshold int64
	threshed  bool // a first cut has set threshold
	cut       Time // when the window was last reduced
	cuts      uint64
	limit     time.Duration
	drain     drain
}

// NewAIMD returns a window that doubles in a round trip up to its threshold,
// then grows by one unit in a round trip, and is halved when an RTT exceeds
// what is usual, bytes are lost or arrive marked: RFC 5681's slow start and
// congestion avoidance with the RTT as the signal.
//
// An RTT is unusual above SRTT + 4 * RTTVAR, where the latter counts as a
// quarter of cfg.Target at least: on a quiet path RTTVAR shrinks to nothing.
// Because SRTT itself follows a
// lasting queue, so is one above the base RTT by more than the base RTT itself
// and more than cfg.Target: a queue that halving the window does not empty.
//
// cfg must be valid. Of packets that were sent before a cut none causes
// another.
func NewAIMD(cfg Config) Controller {
	a := &aimd{limits: cfg.Limits, target: cfg.Target, least: max(cfg.Granularity, cfg.Target/4),
		drain: drain{slack: cfg.Granularity}}
	a.window = a.limits.clamp(a.limits.initial(), 1)
	return a
}

func (a *aimd) OnSend(Time, int64, int64) {}

// congested judges a sample by its RTT.
func (a *aimd) congested(s *Sample) bool {
	if s.RTT == 0 || s.SRTT == 0 {
		return false
	}
	a.limit = min(s.SRTT+max(4*s.RTTVAR, a.least), s.Base+max(s.Base, a.target))
	return s.RTT > a.limit
}

func (a *aimd) OnAck(now Time, s *Sample) {
	if !a.threshed {
		a.drain.soon(now)
	}
	a.drain.update(now, s, drainUnits*a.limits.Unit)
	if s.Marked > 0 || a.congested(s) {
		a.reduce(now, s.Sent, a.window/2)
		return
	}
	// A window that was not used has proved nothing.
	if used := s.Inflight + s.Bytes; used < a.window/2 {
		return
	}
	if !a.threshed || a.window < a.threshold {
		a.window = a.limits.clamp(a.window+s.Bytes, 1)
		return
	}
	a.credit += s.Bytes
	if a.credit >= a.window {
		a.credit -= a.window
		a.window = a.limits.clamp(a.window+a.limits.Unit, 1)
	}
}

// reduce cuts the window once for each flight.
func (a *aimd) reduce(now, sent Time, window int64) {
	if a.threshed && sent <= a.cut {
		return
	}
	a.cut, a.credit = now, 0
	a.cuts++
	a.window = a.limits.clamp(window, 2)
	a.threshold, a.threshed = a.window, true
}

func (a *aimd) OnLoss(now Time, l *Loss) { a.reduce(now, l.Sent, a.window/2) }

func (a *aimd) Reduce(now Time, factor float64) {
	a.reduce(now, now, int64(float64(a.window)*factor))
}

func (a *aimd) OnTimeout(now Time) {
	a.threshold, a.threshed = a.limits.clamp(a.window/2, 2), true
	a.window, a.credit, a.cut = a.limits.Unit, 0, now
	a.cuts++
}

func (a *aimd) Window() int64 {
	if a.drain.on {
		return min(a.window, drainUnits*a.limits.Unit)
	}
	return a.window
}

func (a *aimd) PacingRate() int64 {
	if a.drain.on {
		return a.drain.pace(a.limits.Unit)
	}
	return 0
}

func (a *aimd) Inspect() Inspection {
	i := Inspection{Phase: "avoidance", Window: a.window, Threshold: a.threshold, Target: a.limit, Cuts: a.cuts}
	switch {
	case a.drain.on:
		i.Phase = "drain"
	case !a.threshed || a.window < a.threshold:
		i.Phase = "slow start"
	}
	return i
}
