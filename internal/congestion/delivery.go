package congestion

import "time"

// Delivery measures how fast a path delivers, by the method of
// draft-ietf-ccwg-bbr, section 4.1: every packet carries what had been delivered
// when it left, and its acknowledgement says how much more has been since. The
// zero value is ready for use.
type Delivery struct {
	delivered   int64
	deliveredAt Time
	firstSent   Time
	limited     int64 // delivered count at which what was sent app-limited is over; 0 if it is not

	// of the acknowledgement being taken in
	newest     PacketState
	newestSize int64
	any        bool
}

// PacketState is what a transport keeps with every packet in flight, and with
// every segment, until it is acknowledged or lost.
type PacketState struct {
	// Sent is when the packet left.
	Sent Time

	delivered   int64
	deliveredAt Time
	firstSent   Time
	appLimited  bool
}

// OnSend returns the state of a packet that leaves now, when inflight bytes were
// in flight before it.
func (d *Delivery) OnSend(now Time, inflight int64) PacketState {
	if inflight <= 0 {
		// The path was idle: the flight begins here.
		d.firstSent, d.deliveredAt = now, now
	}
	return PacketState{
		Sent: now, delivered: d.delivered, deliveredAt: d.deliveredAt,
		firstSent: d.firstSent, appLimited: d.limited != 0,
	}
}

// OnAck takes in n newly acknowledged packets of size bytes each that have the same
// state. [Delivery.Rate] ends the acknowledgement.
func (d *Delivery) OnAck(now Time, p *PacketState, size int64, n int) {
	d.delivered += size * int64(n)
	d.deliveredAt = now
	if !d.any || p.delivered > d.newest.delivered || p.delivered == d.newest.delivered && p.Sent >= d.newest.Sent {
		d.newest, d.newestSize, d.any = *p, size, true
		d.firstSent = p.Sent
	}
}

// Rate ends an acknowledgement and returns the delivery rate over the flight of
// the newest packet acknowledged, and that packet's state. The rate is 0 if the
// flight took less than floor, which should be the least RTT: then
// acknowledgements came in a burst and say nothing.
func (d *Delivery) Rate(now Time, floor time.Duration) (bytesPerSecond int64, newest PacketState) {
	newest = d.newest
	d.any = false
	// The flight takes as long as the longer of sending and acknowledging it:
	// a burst of acknowledgements must not seem faster than it was sent.
	took := max(newest.Sent.Sub(newest.firstSent), now.Sub(newest.deliveredAt))
	if d.limited != 0 && d.delivered > d.limited {
		d.limited = 0
	}
	if took <= 0 || took < floor {
		return 0, newest
	}
	return rate(d.delivered-newest.delivered, took), newest
}

// Limited reports that the sender has nothing to send though the window is open,
// with inflight bytes in flight. Rates of those, and of what is sent before
// they are delivered, are the application's, not the path's.
func (d *Delivery) Limited(inflight int64) { d.limited = max(d.delivered+inflight, 1) }

// Delivered returns how many bytes were delivered so far.
func (d *Delivery) Delivered() int64 { return d.delivered }
