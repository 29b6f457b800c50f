package congestion

import "time"

// Source is which clock measured an RTT: a difference of two readings of the transport's clock, which is monotonic, or
// of two time stamps of one interface; see [RoundTrip].
type Source uint8

// The sources, from the least exact.
const (
	// Monotonic is the transport's own clock: the RTT includes the time that
	// the host took to send and to notice the answer.
	Monotonic Source = iota
	// Hardware is the interface's clock, which stamps packets sent and
	// received (SO_TIMESTAMPING) or completions (verbs).
	Hardware
)

var sources = [...]string{"monotonic", "hardware"}

// String names the source.
func (s Source) String() string { return sources[s] }

// Stamp is a reading of some interface's clock. Stamps of different clocks
// cannot be compared.
type Stamp struct {
	// Clock is the number of a clock of this host; 0 means no stamp.
	Clock uint32

	// At is in nanoseconds since the clock's epoch.
	At int64
}

// RoundTrip returns the RTT by the interface's stamps of the packet sent and of
// its answer, if both are of one clock and lie within what the transport's own
// clock measured, and that otherwise. Stamps outside are of other packets, or
// of a clock that was stepped in between.
func RoundTrip(measured time.Duration, sent, received Stamp) (time.Duration, Source) {
	if sent.Clock == 0 || sent.Clock != received.Clock {
		return measured, Monotonic
	}
	// The two clocks run at rates that differ by some 100 ppm at most.
	rtt := time.Duration(received.At - sent.At)
	if rtt <= 0 || rtt > measured+measured/1000+time.Microsecond {
		return measured, Monotonic
	}
	return rtt, Hardware
}

// PTPTime is a reading of a clock that PTP synchronises.
type PTPTime struct {
	// Domain names what the clock is synchronised with, 0 for nothing.
	// Readings are comparable between hosts of one domain.
	Domain uint32

	// At is in nanoseconds since the epoch.
	At int64

	// Error bounds how far the clock is off.
	Error time.Duration
}

// OneWay returns the delays of a packet and of its answer from the PTP times at
// which it was sent and arrived, and the RTT of both. It returns false if the
// clocks are not synchronised with each other, or if they contradict the RTT by
// more than their errors: then at least one is wrong.
func OneWay(sent, arrived PTPTime, rtt time.Duration) (forth, back time.Duration, ok bool) {
	if sent.Domain == 0 || sent.Domain != arrived.Domain || rtt <= 0 {
		return 0, 0, false
	}
	forth = time.Duration(arrived.At - sent.At)
	slack := sent.Error + arrived.Error
	if forth < -slack || forth > rtt+slack {
		return 0, 0, false
	}
	forth = min(max(forth, 0), rtt)
	return forth, rtt - forth, true
}
