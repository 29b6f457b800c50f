package congestion

import (
	"math"
	"time"
)

// The algorithm "delay", the default of FI_WEFT_CC: a window that is steered by the queueing delay. NewDelay describes
// it.

// The constants of the delay target, Swift's (Kumar et al., SIGCOMM 2020,
// section 3) unless said otherwise.
const (
	delayBeta   = 0.8 // how much of the excess delay a cut takes away
	delayMaxCut = 0.5 // the most that one cut takes away
	delayScale  = 2.0 // largest addition for small windows, in targets
	delaySmall  = 0.1 // windows in units between which the addition goes
	delayLarge  = 100 // from delayScale to 0
	// delayLeast is the least window in units. A flow that came down to it learns from its next packet only that
	// the others are gone, so it must not be long until that leaves.
	delayLeast = 1.0 / 12
	// delayLongest is the time after which a packet leaves in any case: where busy hosts
	// make round trips of tens of milliseconds, the least window would have it wait for
	// seconds.
	delayLongest = 50 * time.Millisecond
	delayStep    = 0.5 // units that a round trip adds to the window
	// round trips without a loss, delayLongest at most, after which a buffer is taken to hold a packet of each flow
	delayRoomy = 32
	// targets of delay at most for one packet of the flow's own in the queue, for a window of a unit and more; for
	// smaller ones it is divided by the window's root, in units, as Swift's scaling of flows is
	delayMost = 30

	// lossBacklog is how many units must queue for a loss to be taken as an
	// overflow (TCP Veno, Fu and Liew 2003), and lossTolerance the share of
	// losses above which all are.
	lossBacklog   = 3
	lossTolerance = 0.15

	// markGain is DCTCP's g (RFC 8257, section 3.3).
	markGain = 1.0 / 16
)

// delayTarget is a window steered by queueing delay.
type delayTarget struct {
	limits   Limits
	target   time.Duration
	a, b     float64 // flow scaling: addition is target * (a/sqrt(window in units) + b)
	window   float64
	slow     bool    // slow start
	resume   float64 // window at which slow start after timeouts ends, 0 for none
	alpha    float64 // SRTT's
	standing filter  // least RTT of the last half round trip
	srtt     time.Duration
	reverse  time.Duration // what acknowledgements waited on their way back, smoothed as SRTT is
	pace     time.Duration // the round trip that a window is spread over
	base     time.Duration // RTT of the path without a queue
	queue    time.Duration // standing RTT less base
	aim      time.Duration // the queueing delay that is aimed at now
	rate     filter        // greatest delivery rates, by round, negated
	rounds   rounds
	marks    float64 // average share of bytes with an ECN mark (DCTCP's alpha)
	drain    drain
	timeouts int  // in a row
	cut      Time // of the latest cut: what was sent before it causes no other
	cuts     uint64
	lost     Time // when the latest loss was found, 0 for never
}

// NewDelay returns a window that aims at cfg.Target of queueing delay beyond the
// base RTT, after Swift (SIGCOMM 2020): below the target it grows by half a unit in
// a round trip, above it shrinks in proportion to the excess, at most once in a
// round trip and at most by half. Windows of few units get a longer target, so
// that many flows on one link converge, and a window may be less than a unit:
// then the pace holds the sender back.
//
// A queue in which the flow itself has less than one packet is none of its making:
// it does not cut its window for that, up to delayMost targets of delay, more with a smaller window, and unless
// something was lost in the last delayRoomy round trips or 50 ms: then the buffer has no room for
// a packet of each flow. (TCP Vegas, Brakmo and Peterson 1995, has each flow keep a packet or more queued,
// too.) On a slow link, where the target is only a packet or two long, a few flows
// cannot meet without such a queue, and if they cut for it the link is idle half of
// the time. A flow that queues at two such links sees twice as much as the others, and would get nothing beside them if
// all cut above one limit.
//
// What differs from the paper:
//   - The delay is the RTT less its base, without what acknowledgements wait on their way back where that is known
//     ([Sample.Reverse]), not parts measured by NICs, and the least RTT of the last half round trip counts: a queue
//     that stands is congestion, an acknowledgement that the host delayed is not.
//   - A new flow doubles its window in each round trip until a queue builds up.
//   - A round trip adds half a unit, not a whole one: on a slow link a unit is most of the target,
//     and what was added is seen a round trip late.
//   - A loss without a queue is not taken as congestion until losses exceed 15 %; with a queue of three units or more
//     the window goes down to what the path delivers without it.
//   - ECN marks reduce the window by half of their share (RFC 8257).
//
// cfg must be valid.
func NewDelay(cfg Config) Controller {
	d := &delayTarget{limits: cfg.Limits, target: cfg.Target, slow: true, marks: 1, alpha: cfg.Alpha}
	d.drain.slack = cfg.Granularity
	d.a = delayScale / (1/math.Sqrt(delaySmall) - 1/math.Sqrt(delayLarge))
	d.b = -d.a / math.Sqrt(delayLarge)
	d.window = d.clamp(float64(d.limits.initial()))
	d.aim = d.target
	return d
}

func (d *delayTarget) clamp(window float64) float64 {
	if d.limits.Max > 0 {
		window = min(window, float64(d.limits.Max)*float64(d.limits.Unit))
	}
	return max(window, delayLeast*float64(d.limits.Unit))
}

func (d *delayTarget) OnSend(Time, int64, int64) {}

// measure takes in the round-trip times and the rate of a sample.
func (d *delayTarget) measure(now Time, s *Sample) {
	d.srtt, d.base = s.SRTT, s.Base
	if s.SRTT == 0 {
		d.srtt = s.RTT
	}
	d.queue = time.Duration(d.standing.add(now, d.srtt/2, int64(s.RTT))) - s.Base
	scale := d.a/math.Sqrt(d.window/float64(d.limits.Unit)) + d.b
	d.aim = d.target + time.Duration(float64(d.target)*min(max(scale, 0), delayScale))
	roomy := d.lost == 0 || now.Sub(d.lost) > min(delayRoomy*d.srtt, delayLongest)
	if roomy && d.limits.Unit < sizeLearn { // segments get shorter with the window, packets do not
		own := float64(d.queue+d.base) * float64(d.limits.Unit) / d.window // what one takes at the flow's rate
		most := delayMost * float64(d.target) * math.Sqrt(max(float64(d.limits.Unit)/d.window, 1))
		d.aim = max(d.aim, time.Duration(min(own, most)))
	}
	if s.Rate > 0 && (!s.AppLimited || s.Rate > -d.rate.get()) {
		d.rate.add(Time(d.rounds.number), 10, -s.Rate)
	}
}

// forth returns a sample without what acknowledgements wait on their way back.
func (d *delayTarget) forth(s *Sample) Sample {
	f := *s
	f.SRTT = max(s.SRTT-d.reverse, min(s.SRTT, s.Base))
	if s.RTT > 0 {
		f.RTT -= s.Reverse
		d.reverse += time.Duration(float64(d.alpha * float64(s.Reverse-d.reverse)))
	}
	return f
}

func (d *delayTarget) OnAck(now Time, sample *Sample) {
	d.timeouts = 0
	forth := d.forth(sample)
	s := &forth
	ended := d.rounds.ack(s, d.limits.Unit)
	if s.RTT > 0 {
		d.measure(now, s)
	}
	d.drain.update(now, s, drainUnits*d.limits.Unit)
	d.spread(now, s)
	if ended {
		d.mark(now)
		if d.rounds.lostShare > lossTolerance {
			d.reduce(now, d.window*(1-delayMaxCut))
		}
	}
	switch {
	case d.queue >= d.aim && (d.slow || s.Sent > d.cut):
		d.shrink(now)
	case d.queue < d.aim && float64(s.Inflight+s.Bytes) >= d.window/2 && !d.rounds.losing(d.limits.Unit):
		d.grow(float64(s.Bytes))
	}
}

// spread chooses the round trip for the pace: the latest, because SRTT, which
// learns from a few packets in a round trip, is still long when the queue is
// gone; but SRTT after a drain, so that the window comes back slowly and other
// flows see the empty queue too.
func (d *delayTarget) spread(now Time, s *Sample) {
	switch {
	case s.RTT == 0:
	case d.drain.on || now.Sub(d.drain.ended) < 2*d.srtt:
		d.pace = d.srtt
	default:
		d.pace = min(d.srtt, s.RTT)
	}
}

// mark answers the ECN marks of the round that ended.
func (d *delayTarget) mark(now Time) {
	d.marks += float64(markGain * (d.rounds.markedShare - d.marks))
	if d.rounds.markedShare > 0 {
		d.reduce(now, d.window*(1-d.marks/2))
	}
}

// grow adds delayStep for each window acknowledged, and everything acknowledged
// during slow start.
func (d *delayTarget) grow(bytes float64) {
	switch {
	case d.slow && (d.resume == 0 || d.window < d.resume):
		d.window += bytes
	default:
		d.slow = false
		d.window += bytes * min(delayStep*float64(d.limits.Unit)/d.window, 1)
	}
	d.window = d.clamp(d.window)
}

// shrink answers a queue above the target.
func (d *delayTarget) shrink(now Time) {
	if d.slow {
		// Slow start is a round trip ahead of what it sees.
		if pipe := d.pipe(); pipe > 0 {
			d.reduce(now, max(pipe, d.window*(1-delayMaxCut)))
			return
		}
	}
	excess := float64(d.queue-d.aim) / float64(d.queue+d.base)
	d.reduce(now, d.window*max(1-delayBeta*excess, 1-delayMaxCut))
}

func (d *delayTarget) reduce(now Time, window float64) {
	if d.slow {
		d.slow = false
		d.drain.soon(now)
	}
	d.cut = now
	d.cuts++
	d.window = d.clamp(min(window, d.window))
}

// pipe returns what the path holds at its delivery rate with the delay aimed
// at, 0 while the rate is not known.
func (d *delayTarget) pipe() float64 {
	return float64(product(-d.rate.get(), d.base+d.aim))
}

// backlog returns how many units queue on the path by Little's law.
func (d *delayTarget) backlog() float64 {
	if d.queue <= 0 {
		return 0
	}
	return d.window / float64(d.limits.Unit) * float64(d.queue) / float64(d.queue+d.base)
}

func (d *delayTarget) OnLoss(now Time, l *Loss) {
	d.rounds.lost += l.Bytes
	d.lost = now
	if l.Sent > d.cut && d.backlog() >= lossBacklog {
		pipe := float64(product(-d.rate.get(), d.base))
		d.reduce(now, max(pipe, d.window*(1-delayMaxCut)))
	}
}

func (d *delayTarget) Reduce(now Time, factor float64) { d.reduce(now, d.window*factor) }

// OnTimeout halves the window; a second timeout without an acknowledgement
// between begins again with one unit.
func (d *delayTarget) OnTimeout(now Time) {
	d.timeouts++
	if d.timeouts == 1 {
		d.reduce(now, d.window*(1-delayMaxCut))
		return
	}
	d.resume = max(d.resume, d.window)
	d.reduce(now, float64(d.limits.Unit))
	d.slow = true
}

func (d *delayTarget) Window() int64 {
	w := max(int64(d.window), 1)
	if d.drain.on {
		w = min(w, drainUnits*d.limits.Unit)
	}
	return w
}

// PacingRate spreads a window over a round trip, with room to grow.
func (d *delayTarget) PacingRate() int64 {
	switch {
	case d.pace <= 0:
		return 0
	case d.drain.on:
		return d.drain.pace(d.limits.Unit)
	}
	gain := 1.25
	switch {
	case d.slow:
		gain = 2
	case d.window < float64(2*d.limits.Unit):
		gain = 1
	}
	return max(rate(int64(d.window*gain), d.pace), rate(d.limits.Unit, delayLongest), 1)
}

func (d *delayTarget) Inspect() Inspection {
	i := Inspection{Phase: "steady", Window: max(int64(d.window), 1), Threshold: int64(d.resume),
		Target: d.base + d.aim, Cuts: d.cuts}
	switch {
	case d.drain.on:
		i.Phase = "drain"
	case d.slow:
		i.Phase = "slow start"
	}
	return i
}
