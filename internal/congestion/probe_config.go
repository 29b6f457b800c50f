package congestion

import (
	"fmt"
	"time"
)

// Strategy is how a prober chooses the peers to probe.
type Strategy int

// The strategies.
const (
	// RoundRobin probes one peer in each interval, in order.
	RoundRobin Strategy = iota
	// AllPairs probes every peer in each interval, spread over it.
	AllPairs
	// Random probes one peer in each interval, any.
	Random
	// Adaptive probes each peer with an interval of its own: the configured
	// one while it is congested or its probes are lost, up to 16 times that
	// while it is quiet. Peers of which data says enough are left out.
	Adaptive
)

var strategies = [...]string{"round_robin", "all_pairs", "random", "adaptive"}

// String returns the name that [ParseStrategy] reads.
func (s Strategy) String() string {
	if s < 0 || int(s) >= len(strategies) {
		return fmt.Sprintf("Strategy(%d)", int(s))
	}
	return strategies[s]
}

// ParseStrategy reads the name of a strategy: round_robin, all_pairs, random or
// adaptive.
func ParseStrategy(name string) (Strategy, error) {
	for i, n := range strategies {
		if n == name {
			return Strategy(i), nil
		}
	}
	return 0, fmt.Errorf("probe strategy %q is none of %v", name, strategies)
}

// ProbeConfig is how a prober works.
type ProbeConfig struct {
	Strategy Strategy

	// Interval is between probes (round robin, random), of each peer (all
	// pairs), or of a congested peer (adaptive): 100 us to an hour.
	Interval time.Duration

	// Size is a probe's bytes: ProbeHeader to 4096.
	Size int

	// StartupDelay is before the first probe: 0 to an hour.
	StartupDelay time.Duration

	// Timeout is how long an echo may take before the probe counts as lost:
	// 1 ms to a minute.
	Timeout time.Duration

	// MaxBytes limits the bytes of probes in a second, over all peers; 0 is no
	// limit, otherwise at least Size.
	MaxBytes int64

	// PeerGap is the least time between two probes of one peer: 0 to an hour.
	PeerGap time.Duration

	// Excess is the queueing delay above which a peer is congested: 1 us to
	// 1 s.
	Excess time.Duration
}

// DefaultProbeConfig returns the usual configuration: one probe of 64 bytes
// every 100 ms after half a second, no more than 64 KB in a second.
func DefaultProbeConfig() ProbeConfig {
	return ProbeConfig{
		Strategy: RoundRobin, Interval: 100 * time.Millisecond, Size: 64,
		StartupDelay: 500 * time.Millisecond, Timeout: time.Second,
		MaxBytes: 64000, Excess: 100 * time.Microsecond,
	}
}

// Validate returns an error that names the first field out of its range.
func (c *ProbeConfig) Validate() error {
	if c.Strategy < 0 || int(c.Strategy) >= len(strategies) {
		return fmt.Errorf("probe strategy %d is not known", int(c.Strategy))
	}
	if c.Size < ProbeHeader || c.Size > 4096 {
		return fmt.Errorf("probe size of %d is not between %d and 4096", c.Size, ProbeHeader)
	}
	if c.MaxBytes < 0 || c.MaxBytes > 0 && c.MaxBytes < int64(c.Size) {
		return fmt.Errorf("probe limit of %d bytes/s is not 0 or at least a probe of %d", c.MaxBytes, c.Size)
	}
	for _, d := range []struct {
		name             string
		value, low, high time.Duration
	}{
		{"probe interval", c.Interval, 100 * time.Microsecond, time.Hour},
		{"probe startup delay", c.StartupDelay, 0, time.Hour},
		{"probe timeout", c.Timeout, time.Millisecond, time.Minute},
		{"least gap between probes of a peer", c.PeerGap, 0, time.Hour},
		{"congestion excess", c.Excess, time.Microsecond, time.Second},
	} {
		if d.value < d.low || d.value > d.high {
			return fmt.Errorf("%s of %v is not between %v and %v", d.name, d.value, d.low, d.high)
		}
	}
	return nil
}
