package ptp

import (
	"errors"
	"time"
)

// Reading is one comparison of a PTP clock with the system clock: the system
// clock before and after the PTP clock was read, all in nanoseconds since their
// epochs.
type Reading struct {
	Before, Device, After int64
}

// Offset is how far the PTP clock is ahead of the system clock.
type Offset struct {
	// Value is the difference, leap seconds taken out.
	Value time.Duration

	// Error bounds it: half the time that the reading took.
	Error time.Duration
}

var errReadings = errors.New("no usable reading of the PTP clock")

// best returns the offset by the reading that took the least time. tai is how
// many seconds TAI, which PTP clocks keep, is ahead of UTC; a clock that keeps
// UTC is recognised by being closer without.
func best(readings []Reading, tai int32) (Offset, error) {
	var found Reading
	ok := false
	for _, r := range readings {
		if r.After < r.Before || r.Before <= 0 || r.Device <= 0 {
			continue // the system clock was set meanwhile, or nothing was read
		}
		if !ok || r.After-r.Before < found.After-found.Before {
			found, ok = r, true
		}
	}
	if !ok {
		return Offset{}, errReadings
	}
	half := (found.After - found.Before) / 2
	utc := time.Duration(found.Device - (found.Before + half))
	kept := utc - time.Duration(tai)*time.Second
	if utc.Abs() < kept.Abs() {
		kept = utc
	}
	return Offset{Value: kept, Error: time.Duration(half)}, nil
}
