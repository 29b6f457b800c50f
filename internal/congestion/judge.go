package congestion

import "time"

// Verdict is what probes and data together say about a path.
type Verdict int

// The verdicts.
const (
	// Unknown: there is nothing recent to judge by.
	Unknown Verdict = iota
	// Clear: what was measured recently shows no queue.
	Clear
	// Shared: probes queue. They are small and few, so the queue is not this
	// sender's alone.
	Shared
	// Bulk: data queues where recent probes do not. The queue is one that
	// only large transfers wait in: this sender's own, the target's, or that
	// of their traffic class.
	Bulk
	// Inline: data queues, and no recent probe says where.
	Inline
)

var verdicts = [...]string{"unknown", "clear", "shared", "bulk", "inline"}

// String names the verdict.
func (v Verdict) String() string { return verdicts[v] }

// Factor is what a verdict multiplies a window with: a half for a queue of
// large transfers, which holding back is sure to shorten, three quarters for
// one that others feed as well, 1 otherwise.
func (v Verdict) Factor() float64 {
	switch v {
	case Shared:
		return 0.75
	case Bulk:
		return 0.5
	default:
		return 1
	}
}

// Judge compares two kinds of samples of one path: of probes, which are small
// and come all the time, and of data, which queues behind itself. Both are
// judged by their queueing delay, which is what they exceed the path's base RTT
// by: the base is common, the delays are not, so the comparison is never one of
// an average with itself.
//
// A delay counts if two samples in a row exceed the limit, and while they are
// recent; or, for probes, if two in a row were lost. How far apart a peer's probes are
// depends on their number and on the time after which one is lost, so two of them are in a
// row if there is not twice as much time between them as before the first.
type Judge struct {
	limit  time.Duration
	fresh  time.Duration
	window time.Duration
	base   filter
	probe  kind
	inline kind
}

// kind is the latest of one kind of samples.
type kind struct {
	rtt    [2]time.Duration // the latest first, 0 without, lostRTT for none
	at     Time             // of the latest
	before Time             // of the one before
	gap    time.Duration    // between the one before and the one before that, 0 without
}

// mostGap is how far apart two probes are at most that count as in a row.
const mostGap = 30 * time.Second

// lostRTT stands for the RTT of a probe without echo.
const lostRTT = time.Duration(1<<63 - 1)

func (k *kind) add(now Time, rtt time.Duration) {
	if k.rtt[1] != 0 {
		k.gap = k.at.Sub(k.before)
	}
	k.rtt[1], k.rtt[0] = k.rtt[0], rtt
	k.before, k.at = k.at, now
}

// NewJudge returns a judge that counts queueing delays above cfg.Target, by
// samples no older than fresh, which should be a few times the probes' interval.
func NewJudge(cfg *Config, fresh time.Duration) Judge {
	return Judge{limit: max(cfg.Target, cfg.Granularity), fresh: fresh, window: cfg.BaseWindow}
}

// OnProbe takes in a probe's RTT.
func (j *Judge) OnProbe(now Time, rtt time.Duration) {
	j.base.add(now, j.window, int64(rtt))
	j.probe.add(now, rtt)
}

// OnProbeLost takes in a probe without echo.
func (j *Judge) OnProbeLost(now Time) { j.probe.add(now, lostRTT) }

// OnInline takes in the RTT of data, without its own transmission time.
func (j *Judge) OnInline(now Time, rtt time.Duration) {
	j.base.add(now, j.window, int64(rtt))
	j.inline.add(now, rtt)
}

// Base returns the path's base RTT from both kinds of samples, 0 before the
// first.
func (j *Judge) Base() time.Duration { return time.Duration(j.base.get()) }

// queue returns the lesser queueing delay of the two latest samples of a kind, which are
// in a row if they are apart no longer, and whether they are recent.
func (j *Judge) queue(now Time, k *kind, apart time.Duration) (delay time.Duration, recent bool) {
	if k.rtt[0] == 0 || now.Sub(k.at) > j.fresh {
		return 0, false
	}
	least := k.rtt[0]
	if k.rtt[1] == 0 || k.at.Sub(k.before) > max(apart, 2*j.fresh) {
		least = min(least, j.Base()) // one sample proves no queue
	} else {
		least = min(least, k.rtt[1])
	}
	return least - j.Base(), true
}

// Verdict judges the path.
func (j *Judge) Verdict(now Time) Verdict {
	probe, probed := j.queue(now, &j.probe, min(2*j.probe.gap, mostGap))
	inline, sent := j.queue(now, &j.inline, 0)
	switch {
	case !probed && !sent:
		return Unknown
	case probed && probe > j.limit:
		return Shared
	case sent && inline > j.limit && probed:
		return Bulk
	case sent && inline > j.limit:
		return Inline
	default:
		return Clear
	}
}
