package congestion

import "time"

// Pacer spreads packets over time. It is a token bucket that counts in time:
// every packet moves the time of the next one by what it takes at the rate, and
// a sender that was late may catch up by Burst.
type Pacer struct {
	// Burst is how far a sender may lag behind the rate and still catch up,
	// and how much may leave at once. A transport that sleeps between packets
	// needs at least the precision of its timer.
	Burst time.Duration

	next Time
	rate int64 // at which next was computed
}

// Next returns when the next packet may leave. A time in the past means now.
func (p *Pacer) Next() Time { return p.next }

// Room returns how many packets of size bytes may leave now at a rate of
// bytesPerSecond, up to most.
func (p *Pacer) Room(now Time, size, bytesPerSecond int64, most int) int {
	next := max(p.next, now.Add(-p.Burst))
	if next > now {
		return 0
	}
	each := airtime(size, bytesPerSecond)
	if each <= 0 {
		return most
	}
	return int(min(int64(now.Sub(next)/each)+1, int64(most)))
}

// OnSend accounts for size bytes that leave now at a rate of bytesPerSecond; a
// rate of 0 means no limit.
func (p *Pacer) OnSend(now Time, size, bytesPerSecond int64) {
	p.next = max(p.next, now.Add(-p.Burst)).Add(airtime(size, bytesPerSecond))
	p.rate = bytesPerSecond
}

// Quicken sets that the rate is bytesPerSecond from now on, 0 for no limit. If that is
// higher than when the last packet left, the next need not wait as long as was said then.
func (p *Pacer) Quicken(now Time, bytesPerSecond int64) {
	left := p.next.Sub(now)
	switch {
	case left <= 0:
	case bytesPerSecond == 0:
		p.next = now
	case bytesPerSecond > p.rate:
		p.next = now.Add(time.Duration(float64(left) * float64(p.rate) / float64(bytesPerSecond)))
		p.rate = bytesPerSecond
	}
}
