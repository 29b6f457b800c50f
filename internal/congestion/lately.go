package congestion

import "time"

// lately is how fast a path delivered lately, as a mean over times that are long
// beside what a token bucket on the path lets through at once, and without heaps of
// acknowledgements that hosts delayed. The rates of single flights ([Delivery]) are
// neither: after a pause they are those of the bucket or of the host's own link.
//
// There are two means, of which the greater counts: over all of the time, in
// pieces at least as long as hosts hold acknowledgements up, and over pieces in
// which they delayed none. Where hosts seldom run, only the latter is the path's rate.
type lately struct {
	rate         filter // greatest means of latelyWindow, negated
	whole, clear mean
}

// mean is one that is being taken.
type mean struct {
	at    Time
	since int64 // what had been delivered then
}

// latelyLeast is the least time that a mean is taken over: Linux' tbf and policers
// let through what takes a few milliseconds. latelyWindow is how long it counts: hosts
// that seldom run have some ten means in it, and a flow that has had a link for itself
// does not go on at that rate for long beside others. latelyDelay is how long an
// acknowledgement is late that comes in a heap.
const (
	latelyLeast  = 10 * time.Millisecond
	latelyWindow = 300 * time.Millisecond
	latelyDelay  = latelyLeast / 4
)

// add takes in that delivered bytes are there at a time, by an
// acknowledgement that hosts delayed for d, and others lately for up to ackDelay.
func (l *lately) add(now Time, delivered int64, d, ackDelay time.Duration) {
	if d > latelyDelay {
		l.clear = mean{now, delivered}
	}
	l.take(&l.clear, now, delivered, latelyLeast)
	l.take(&l.whole, now, delivered, max(latelyLeast, ackDelay))
}

// take ends a mean that is long enough, and begins the next.
func (l *lately) take(m *mean, now Time, delivered int64, least time.Duration) {
	took := now.Sub(m.at)
	if m.at != 0 && took < least {
		return
	}
	if m.at != 0 {
		l.rate.add(now, latelyWindow, -rate(delivered-m.since, took))
	}
	*m = mean{now, delivered}
}

// get returns the bytes per second, 0 before the first mean.
func (l *lately) get() int64 { return -l.rate.get() }
