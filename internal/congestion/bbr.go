package congestion

import "time"

// The phases of BBR.
const (
	bbrStartup = iota
	bbrDrain
	bbrProbeRate
)

var bbrPhases = [...]string{"startup", "drain", "probe rate"}

// The constants of BBR (draft-cardwell-iccrg-bbr-congestion-control-00) unless
// said otherwise.
const (
	bbrStartGain  = 2.885 // 2/ln 2: doubles the rate in each round
	bbrWindowGain = 2
	bbrRateRounds = 10
	bbrFullRounds = 3
	bbrFullGrowth = 1.25
	bbrLeast      = 4 // units
	// bbrCut and bbrRecover change the bound on what is in flight after a
	// round with too many losses or marks, and after one without (BBRv2).
	bbrCut     = 0.7
	bbrRecover = 1.25
)

var bbrCycle = [...]float64{1.25, 0.75, 1, 1, 1, 1, 1, 1}

// bbr paces at the delivery rate it measured.
type bbr struct {
	limits     Limits
	rnd        Rand
	phase      int
	rate       filter // greatest delivery rate of the last rounds, negated
	rounds     rounds
	base       time.Duration
	drain      drain // to see the base
	full       int64
	fullRounds int
	fullSeen   bool
	cycle      int
	cycleAt    Time
	bound      int64 // on what is in flight, 0 for none
	inflight   int64
	cuts       uint64
}

// NewBBR returns a controller that models the path by its delivery rate and base
// RTT, and sends at that rate with at most twice their product in flight: BBR
// (Cardwell et al., ACM Queue 2016), with a bound on what is in flight that
// losses above 15 % and ECN marks in more than half of a round bring down, as in
// its second version. The base RTT is measured as often as in [NewDelay], not
// every 10 s. rnd spreads the phases in which flows ask for more.
//
// cfg must be valid.
func NewBBR(cfg Config, rnd Rand) Controller {
	return &bbr{limits: cfg.Limits, rnd: rnd, drain: drain{slack: cfg.Granularity}}
}

func (b *bbr) OnSend(_ Time, _, inflight int64) { b.inflight = inflight }

func (b *bbr) OnAck(now Time, s *Sample) {
	b.inflight = s.Inflight
	ended := b.rounds.ack(s, b.limits.Unit)
	if s.Rate > 0 && (!s.AppLimited || s.Rate > b.bandwidth()) {
		b.rate.add(Time(b.rounds.number), bbrRateRounds, -s.Rate)
	}
	if s.Base > 0 {
		b.base = s.Base
	}
	b.drain.update(now, s, drainUnits*b.limits.Unit)
	if ended {
		b.round(s)
	}
	b.advance(now, s)
}

// round ends a round: is the pipe full, and were there too many losses?
func (b *bbr) round(s *Sample) {
	if b.rounds.lostShare > lossTolerance || b.rounds.markedShare > 0.5 {
		b.bound = max(int64(bbrCut*float64(b.window(1))), bbrLeast*b.limits.Unit)
		b.cuts++
	} else if b.bound > 0 && b.rounds.spanned {
		b.bound = int64(bbrRecover * float64(b.bound))
		if b.bound > b.window(bbrStartGain) {
			b.bound = 0
		}
	}
	if b.fullSeen || s.AppLimited {
		return
	}
	if bw := b.bandwidth(); float64(bw) >= float64(b.full)*bbrFullGrowth {
		b.full, b.fullRounds = bw, 0
		return
	}
	b.fullRounds++
	b.fullSeen = b.fullRounds >= bbrFullRounds
}

// advance goes from phase to phase.
func (b *bbr) advance(now Time, s *Sample) {
	switch b.phase {
	case bbrStartup:
		if b.fullSeen {
			b.drain.soon(now)
			b.phase = bbrDrain
		}
	case bbrDrain:
		if s.Inflight <= b.product(1) {
			b.probeRate(now)
		}
	case bbrProbeRate:
		b.turn(now, s)
	}
}

// probeRate begins the cycle anywhere but in the phase that drains.
func (b *bbr) probeRate(now Time) {
	b.phase = bbrProbeRate
	b.cycle = below(b.rnd, len(bbrCycle)-1)
	if b.cycle >= 1 {
		b.cycle++
	}
	b.cycleAt = now
}

// turn goes on in the cycle.
func (b *bbr) turn(now Time, s *Sample) {
	over := now.Sub(b.cycleAt) > b.base
	switch gain := bbrCycle[b.cycle]; {
	case gain > 1:
		// Until the higher rate has filled the path that much more.
		over = over && (b.rounds.lost > 0 || s.Inflight+s.Bytes >= b.product(gain))
	case gain < 1:
		over = over || s.Inflight <= b.product(1)
	}
	if over {
		b.cycle = (b.cycle + 1) % len(bbrCycle)
		b.cycleAt = now
	}
}

func (b *bbr) OnLoss(_ Time, l *Loss) {
	b.inflight = l.Inflight
	b.rounds.lost += l.Bytes
}

// Reduce bounds what is in flight until rounds without losses lift the bound.
func (b *bbr) Reduce(_ Time, factor float64) {
	b.bound = max(int64(factor*float64(b.Window())), bbrLeast*b.limits.Unit)
	b.cuts++
}

// OnTimeout forgets the rate: nothing came back for a whole RTO.
func (b *bbr) OnTimeout(Time) {
	b.cuts++
	b.rate, b.full, b.fullRounds, b.fullSeen = filter{}, 0, 0, false
	b.phase = bbrStartup
	b.bound = 0
}

func (b *bbr) bandwidth() int64 { return -b.rate.get() }

// product is gain times rate times base RTT.
func (b *bbr) product(gain float64) int64 {
	return int64(gain * float64(product(b.bandwidth(), b.base)))
}

// window is what may be in flight at a gain: the product, and three units for
// acknowledgements that come together.
func (b *bbr) window(gain float64) int64 {
	if b.bandwidth() == 0 || b.base == 0 {
		return b.limits.clamp(b.limits.initial(), bbrLeast)
	}
	return b.limits.clamp(b.product(gain)+3*b.limits.Unit, bbrLeast)
}

func (b *bbr) Window() int64 {
	if b.drain.on {
		return b.limits.clamp(0, drainUnits)
	}
	return b.steady()
}

// steady is the window outside of drains.
func (b *bbr) steady() int64 {
	gain := float64(bbrWindowGain)
	if b.phase == bbrStartup {
		gain = bbrStartGain
	}
	w := b.window(gain)
	if b.bound > 0 {
		w = min(w, b.bound)
	}
	return w
}

func (b *bbr) PacingRate() int64 {
	bw := b.bandwidth()
	switch {
	case bw == 0:
		return 0
	case b.drain.on:
		return b.drain.pace(b.limits.Unit)
	}
	gain := 1.0
	switch b.phase {
	case bbrStartup:
		gain = bbrStartGain
	case bbrDrain:
		gain = 1 / bbrStartGain
	case bbrProbeRate:
		gain = bbrCycle[b.cycle]
	}
	return max(int64(gain*float64(bw)), 1)
}

func (b *bbr) Inspect() Inspection {
	i := Inspection{Phase: bbrPhases[b.phase], Window: b.steady(), Threshold: b.bound, Target: b.base, Cuts: b.cuts}
	if b.drain.on {
		i.Phase = "probe RTT"
	}
	return i
}
