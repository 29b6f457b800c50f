package congestion

import "time"

// Estimator keeps the round-trip time of one path: RFC 6298's SRTT, RTTVAR and
// retransmission timer, and the base RTT, which is the least within a window of
// time. The base is what a path takes without queues; SRTT follows a lasting
// queue up and so cannot show one.
//
// Samples must not be ambiguous (Karn's rule): a packet that was sent twice
// under one number is not to be measured.
type Estimator struct {
	alpha, beta  float64
	granularity  time.Duration
	minRTO       time.Duration
	maxRTO       time.Duration
	baseWindow   time.Duration
	rate         int64
	sizes        *sizes // for segments over a link of unknown rate, or nil
	srtt, rttvar time.Duration
	least, most  time.Duration
	last         time.Duration
	base         filter
	samples      uint64
	backoff      uint
}

// NewEstimator returns an estimator without samples. cfg must be valid.
func NewEstimator(cfg *Config) Estimator {
	e := Estimator{
		alpha: cfg.Alpha, beta: cfg.Beta, granularity: cfg.Granularity,
		minRTO: cfg.MinRTO, maxRTO: cfg.MaxRTO, baseWindow: cfg.BaseWindow, rate: cfg.Rate,
	}
	if cfg.Unit >= sizeLearn {
		e.sizes = new(sizes)
	}
	return e
}

// SetRate sets the speed of the path's slowest link in bytes per second, 0 for
// unknown. It counts for later samples.
func (e *Estimator) SetRate(bytesPerSecond int64) { e.rate = max(bytesPerSecond, 0) }

// correct returns what a measured RTT says about the path: without the time that
// size bytes need on the slowest link, and at least 1 ns. A large segment takes
// longer than a small one without any congestion.
func (e *Estimator) correct(now Time, rtt time.Duration, size int64) time.Duration {
	if e.rate == 0 && e.sizes != nil {
		return max(e.sizes.correct(now, e.baseWindow, rtt, size), 1)
	}
	return max(rtt-airtime(size, e.rate), 1)
}

// Add takes in the RTT of one packet of size bytes and returns it corrected.
// An RTT that is not positive is no sample: Add ignores it and returns 0.
func (e *Estimator) Add(now Time, rtt time.Duration, size int64) time.Duration {
	if rtt <= 0 {
		return 0
	}
	rtt = e.correct(now, rtt, size)
	e.base.add(now, e.baseWindow, int64(rtt))
	e.last = rtt
	if e.samples == 0 {
		e.srtt, e.rttvar, e.least, e.most = rtt, rtt/2, rtt, rtt
	} else {
		e.srtt, e.rttvar = smooth(e.srtt, e.rttvar, rtt, e.alpha, e.beta)
		e.least, e.most = min(e.least, rtt), max(e.most, rtt)
	}
	e.samples++
	e.backoff = 0
	return rtt
}

// smooth is one step of RFC 6298, section 2.3. RTTVAR is computed with the old
// SRTT. The conversions keep compilers from fusing multiplication and addition,
// so that a simulation gives the same numbers on every machine.
func smooth(srtt, rttvar, rtt time.Duration, alpha, beta float64) (newSRTT, newRTTVAR time.Duration) {
	diff := rtt - srtt
	dev := max(diff, -diff) - rttvar
	return srtt + time.Duration(float64(alpha*float64(diff))), rttvar + time.Duration(float64(beta*float64(dev)))
}

// SRTT returns the smoothed RTT, 0 before the first sample.
func (e *Estimator) SRTT() time.Duration { return e.srtt }

// RTTVAR returns the mean deviation of the RTT, 0 before the first sample.
func (e *Estimator) RTTVAR() time.Duration { return e.rttvar }

// Base returns the least RTT of the window, 0 before the first sample. It ages
// with samples only: a silent path keeps its base.
func (e *Estimator) Base() time.Duration { return time.Duration(e.base.get()) }

// Min returns the least RTT ever, 0 before the first sample.
func (e *Estimator) Min() time.Duration { return e.least }

// Max returns the greatest RTT ever, 0 before the first sample.
func (e *Estimator) Max() time.Duration { return e.most }

// Last returns the latest RTT, 0 before the first sample.
func (e *Estimator) Last() time.Duration { return e.last }

// Samples returns how many samples were taken in.
func (e *Estimator) Samples() uint64 { return e.samples }

// RTO returns how long to wait for an acknowledgement: SRTT + max(G, 4 *
// RTTVAR), doubled for every timeout since the last sample, within the
// configured bounds; 1 s before the first sample or probe (RFC 6298, section 2.1).
func (e *Estimator) RTO() time.Duration {
	rto := time.Second
	if e.srtt > 0 {
		rto = e.srtt + max(e.granularity, 4*e.rttvar)
	}
	rto = min(max(rto, e.minRTO), e.maxRTO)
	for range e.backoff {
		if rto >= e.maxRTO {
			break
		}
		rto *= 2
	}
	return min(rto, e.maxRTO)
}

// rateSeen takes in a delivery rate, which the slowest link must be capable of.
func (e *Estimator) rateSeen(now Time, bytesPerSecond int64) {
	if e.sizes != nil && bytesPerSecond > 0 {
		e.sizes.peak.add(now, e.baseWindow, -bytesPerSecond)
	}
}

// seed gives SRTT and RTTVAR a start from a probe while data has measured
// nothing, so that the first timeout need not be a second.
func (e *Estimator) seed(rtt time.Duration) {
	switch {
	case e.samples > 0:
	case e.srtt == 0:
		e.srtt, e.rttvar = rtt, rtt/2
	default:
		e.srtt, e.rttvar = smooth(e.srtt, e.rttvar, rtt, e.alpha, e.beta)
	}
}

// Backoff doubles the RTO until the next sample (RFC 6298, section 5.5).
func (e *Estimator) Backoff() {
	if e.backoff < 63 {
		e.backoff++
	}
}

// Forget drops everything measured, for a path that is known to have changed.
func (e *Estimator) Forget() {
	e.srtt, e.rttvar, e.least, e.most, e.last = 0, 0, 0, 0, 0
	e.base = filter{}
	if e.sizes != nil {
		*e.sizes = sizes{}
	}
	e.samples, e.backoff = 0, 0
}
