package congestion

import "time"

// drain makes a flow empty its part of a queue now and then, to see the base
// RTT. A flow that starts on a busy link takes the others' queue for its base;
// aiming at a delay above that it would crowd them out and keep a queue of its
// own that hides the base from all. The flow that has the most in the
// queue uncovers the most by draining.
//
// Many flows uncover nothing one by one, so they drain together: a flow that sees
// the queue halve joins if its own turn would come soon, and one that sees its
// base RTT anyhow puts its turn off (BBR synchronises its flows so).
type drain struct {
	slack time.Duration // how far above the base an RTT still shows it
	young int           // drains still to come in quick succession
	seen  Time          // when the base was last seen
	rtt   time.Duration // SRTT at the start of the drain
	on    bool
	hold  Time // when the drain ends; 0 until what is in flight is down
	limit Time // when it ends in any case
	ended Time // when the latest one ended
}

// The intervals between drains: drainRounds round trips but drainLeast at least,
// and for a flow that has just filled its path 8, 16 and 32 round trips, within
// which older flows make room and the base shows. A drain costs about two round
// trips of sending.
const (
	drainRounds = 64
	drainLeast  = 100 * time.Millisecond
	drainYoung  = 3
	drainUnits  = 1
)

// interval is how long the flow may go without seeing its base.
func (d *drain) interval(srtt time.Duration) time.Duration {
	if d.young > 0 {
		return drainRounds >> d.young * srtt
	}
	return max(drainLeast, drainRounds*srtt)
}

// update takes a sample in. bound is what may be in flight during a drain.
func (d *drain) update(now Time, s *Sample, bound int64) {
	if s.RTT == 0 {
		return
	}
	if d.on {
		d.proceed(now, s, bound)
		return
	}
	if d.seen == 0 || s.RTT <= s.Base+max(s.Base/32, d.slack) {
		d.seen = max(d.seen, now)
	}
	due := d.interval(s.SRTT)
	if s.RTT < s.Base+(s.SRTT-s.Base)/2 {
		due /= 2 // others drain: join them
	}
	if now.Sub(d.seen) > due {
		d.young = max(d.young-1, 0)
		d.on, d.hold, d.limit, d.rtt = true, 0, now.Add(6*s.SRTT), s.SRTT
		d.proceed(now, s, bound)
	}
}

// proceed ends a drain a round trip after what is in flight came down.
func (d *drain) proceed(now Time, s *Sample, bound int64) {
	if d.hold == 0 && s.Inflight <= bound {
		d.hold = now.Add(s.SRTT)
	}
	if d.hold != 0 && now >= d.hold || now >= d.limit {
		d.on, d.seen, d.ended = false, now, now
	}
}

// pace returns the bytes per second at which packets of unit bytes leave during a
// drain: one in a round trip and a half. With one in flight all the time, as many
// flows as a path holds packets would still fill it.
func (d *drain) pace(unit int64) int64 { return max(rate(unit, d.rtt*3/2), 1) }

// soon makes the next drains come in quick succession.
func (d *drain) soon(now Time) { d.seen, d.young = now, drainYoung }
