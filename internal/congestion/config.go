package congestion

import (
	"fmt"
	"math"
	"time"
)

// Algorithm names a way to compute the window.
type Algorithm int

// The algorithms.
const (
	// Fixed never changes the window. For fabrics that hold senders back
	// themselves, and to compare against.
	Fixed Algorithm = iota
	// AIMD adds to the window while the RTT is as usual and halves it when it
	// is not; see [NewAIMD].
	AIMD
	// Delay steers the RTT to a target; see [NewDelay].
	Delay
	// BBR sends at the rate the path was seen to deliver; see [NewBBR].
	BBR
)

var algorithms = [...]string{"fixed", "aimd", "delay", "bbr"}

// String returns the name that [ParseAlgorithm] reads.
func (a Algorithm) String() string {
	if a < 0 || int(a) >= len(algorithms) {
		return fmt.Sprintf("Algorithm(%d)", int(a))
	}
	return algorithms[a]
}

// ParseAlgorithm reads the name of an algorithm: fixed, aimd, delay or bbr.
func ParseAlgorithm(name string) (Algorithm, error) {
	for i, n := range algorithms {
		if n == name {
			return Algorithm(i), nil
		}
	}
	return 0, fmt.Errorf("congestion algorithm %q is none of %v", name, algorithms)
}

// Limits bound a window.
type Limits struct {
	// Unit is the size of a full packet or segment in bytes, which windows
	// count in: 1 to 2^30.
	Unit int64

	// Initial is the window at the start in units: 1 to 2^20.
	Initial int

	// Max is the largest window in units, 0 for none: at least Initial, at
	// most 2^30.
	Max int
}

// Config is what a path needs to know.
type Config struct {
	Limits

	// Algorithm computes the window.
	Algorithm Algorithm

	// Alpha and Beta are the gains of SRTT and RTTVAR, RFC 6298's 1/8 and 1/4:
	// above 0, at most 1.
	Alpha, Beta float64

	// BaseWindow is how long a least RTT counts as the base RTT: 1 ms to an
	// hour. A path that changed to a longer one is noticed after this long.
	BaseWindow time.Duration

	// Rate is the speed of the path's slowest link in bytes per second where
	// that is known, 0 otherwise. With it the estimator takes a packet's own
	// transmission time out of its RTT. Without, if Unit is 16 KiB or more, it
	// learns what a segment's size adds.
	Rate int64

	// Target is the queueing delay that [Delay] aims at and [AIMD] tolerates,
	// beyond the base RTT: 1 us to 1 s.
	Target time.Duration

	// Granularity is the resolution of RTT samples, RFC 6298's G, and the
	// least excess that counts as congestion: 0 to 100 ms.
	Granularity time.Duration

	// MinRTO and MaxRTO bound the retransmission timer: 0 < MinRTO <= MaxRTO.
	MinRTO, MaxRTO time.Duration
}

// DefaultConfig returns the configuration for a packet transport with full
// packets of unit bytes.
func DefaultConfig(unit int64) Config {
	return Config{
		Limits:      Limits{Unit: unit, Initial: 10, Max: 0},
		Algorithm:   Delay,
		Alpha:       0.125,
		Beta:        0.25,
		BaseWindow:  10 * time.Second,
		Target:      200 * time.Microsecond,
		Granularity: 10 * time.Microsecond,
		MinRTO:      5 * time.Millisecond,
		MaxRTO:      2 * time.Second,
	}
}

// Validate returns an error that names the first field out of its range.
func (c *Config) Validate() error {
	if err := c.Limits.validate(); err != nil {
		return err
	}
	if c.Algorithm < 0 || int(c.Algorithm) >= len(algorithms) {
		return fmt.Errorf("congestion algorithm %d is not known", int(c.Algorithm))
	}
	for _, g := range []struct {
		name  string
		value float64
	}{{"alpha", c.Alpha}, {"beta", c.Beta}} {
		if math.IsNaN(g.value) || g.value <= 0 || g.value > 1 {
			return fmt.Errorf("RTT gain %s of %v is not above 0 and at most 1", g.name, g.value)
		}
	}
	if c.Rate < 0 {
		return fmt.Errorf("link rate of %d bytes/s is negative", c.Rate)
	}
	for _, d := range []struct {
		name             string
		value, low, high time.Duration
	}{
		{"base RTT window", c.BaseWindow, time.Millisecond, time.Hour},
		{"target delay", c.Target, time.Microsecond, time.Second},
		{"RTT granularity", c.Granularity, 0, 100 * time.Millisecond},
		{"least RTO", c.MinRTO, 1, time.Hour},
		{"largest RTO", c.MaxRTO, c.MinRTO, time.Hour},
	} {
		if d.value < d.low || d.value > d.high {
			return fmt.Errorf("%s of %v is not between %v and %v", d.name, d.value, d.low, d.high)
		}
	}
	return nil
}

func (l *Limits) validate() error {
	for _, n := range []struct {
		name             string
		value, low, high int64
	}{
		{"window unit", l.Unit, 1, 1 << 30},
		{"initial window", int64(l.Initial), 1, 1 << 20},
		{"largest window", int64(l.Max), 0, 1 << 30},
	} {
		if n.value < n.low || n.value > n.high {
			return fmt.Errorf("%s of %d is not between %d and %d", n.name, n.value, n.low, n.high)
		}
	}
	if l.Max > 0 && l.Max < l.Initial {
		return fmt.Errorf("largest window of %d is below the initial one of %d", l.Max, l.Initial)
	}
	return nil
}

// initial is the first window in bytes.
func (l *Limits) initial() int64 { return int64(l.Initial) * l.Unit }

// clamp bounds a window in bytes from below by low units and from above by the
// largest window.
func (l *Limits) clamp(window int64, low int64) int64 {
	if l.Max > 0 {
		window = min(window, int64(l.Max)*l.Unit)
	}
	return max(window, low*l.Unit)
}

// New makes the controller that cfg names. rnd is only drawn from by algorithms
// that need chance. It returns an error if cfg is not valid.
func New(cfg Config, rnd Rand) (Controller, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	switch cfg.Algorithm {
	case AIMD:
		return NewAIMD(cfg), nil
	case Delay:
		return NewDelay(cfg), nil
	case BBR:
		return NewBBR(cfg, rnd), nil
	default:
		return NewFixed(cfg.Limits), nil
	}
}
