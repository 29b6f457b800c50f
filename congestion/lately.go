package congestion

import "time"

// lately is how fast a path delivered lately, as a mean over times that are long
// beside what hosts hold acknowledgements up for and beside what a token bucket
// on the path lets through at once. The rates of single flights ([Delivery]) are
// neither: after a pause they are those of the bucket or of the host's own link.
type lately struct {
	rate  filter // greatest means of heldWindow, negated
	at    Time   // when the mean that is being taken began
	since int64  // what had been delivered then
}

// latelyLeast is the least time that a mean is taken over. Linux' tbf and
// policers let through what takes a few milliseconds.
const latelyLeast = 10 * time.Millisecond

// add takes in that delivered bytes are there at a time, with acknowledgements
// held up for as long as held.
func (l *lately) add(now Time, delivered int64, held time.Duration) {
	took := now.Sub(l.at)
	if l.at == 0 {
		l.at, l.since = now, delivered
		return
	}
	if took < max(latelyLeast, 4*held) {
		return
	}
	l.rate.add(now, heldWindow, -rate(delivered-l.since, took))
	l.at, l.since = now, delivered
}

// get returns the bytes per second, 0 before the first mean.
func (l *lately) get() int64 { return -l.rate.get() }
