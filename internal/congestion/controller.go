package congestion

import "time"

// Controller is a congestion window: it learns what was sent, acknowledged and
// lost on one path and says how many bytes may be in flight and how fast they
// may leave. It works for packets of a transport and for segments of long
// operations alike; [Limits.Unit] is the size of a full one.
//
// A controller belongs to one path and is not safe for concurrent use. The
// time never runs backwards between calls. Methods do not allocate and keep
// none of the pointers that they get.
//
// A transport may send while what is in flight is less than Window; thus one
// packet may reach beyond the window, and a window smaller than a packet does
// not wedge. If PacingRate is not 0, packets leave no faster than that; see
// [Pacer].
type Controller interface {
	// OnSend reports that so many bytes leave now, retransmissions included;
	// inflight counts all bytes in flight with these.
	OnSend(now Time, bytes, inflight int64)

	// OnAck reports newly acknowledged bytes. It is called once for each
	// arriving acknowledgement, after the transport took the acknowledged
	// bytes out of flight.
	OnAck(now Time, s *Sample)

	// OnLoss reports bytes newly found lost, once for each detection, after
	// they were taken out of flight. Bytes that a timer finds lost count here
	// too; the timer itself is OnTimeout.
	OnLoss(now Time, l *Loss)

	// OnTimeout reports that the retransmission timer ran out: nothing came back
	// for a whole RTO.
	OnTimeout(now Time)

	// Reduce multiplies the window by factor, in (0, 1), because something
	// other than this path's own traffic saw congestion; see [Path.OnProbe].
	Reduce(now Time, factor float64)

	// Window returns how many bytes may be in flight, at least 1.
	Window() int64

	// PacingRate returns the bytes per second at which packets may leave, 0
	// for no limit.
	PacingRate() int64

	// Inspect returns what plots and monitors show.
	Inspect() Inspection
}

// Sample is what one acknowledgement says. [Path] fills it.
type Sample struct {
	// RTT is the round-trip time measured by the newest packet that is newly
	// acknowledged, without the time for which the peer says it kept the
	// acknowledgement back and without the packet's own transmission time
	// where that is known. 0 means that the acknowledgement measures nothing:
	// Karn's rule, a packet sent twice under one number.
	RTT time.Duration

	// SRTT and RTTVAR are the path's estimate before this sample (RFC 6298);
	// 0 before the first.
	SRTT, RTTVAR time.Duration

	// Base is the least RTT within the estimator's window, this sample
	// included; 0 before the first.
	Base time.Duration

	// Reverse is what of RTT - Base the acknowledgement has waited on its way back, where that is known: 0 to
	// RTT - Base.
	Reverse time.Duration

	// Sent is when the newest packet that is newly acknowledged left. A
	// reaction to a sample of a packet that left before the previous reaction
	// would punish the same queue twice.
	Sent Time

	// Bytes is how many bytes are newly acknowledged. Marked of them arrived
	// with ECN's congestion experienced (RFC 3168).
	Bytes, Marked int64

	// Inflight is how many bytes remain in flight.
	Inflight int64

	// Delivered is how many bytes the path has delivered so far, this
	// acknowledgement included. PriorDelivered is that number when the newest
	// acknowledged packet left; their difference is one round's delivery.
	Delivered, PriorDelivered int64

	// Rate is the delivery rate over the flight of the newest acknowledged
	// packet (draft-ietf-ccwg-bbr, section 4.1), 0 if it was too short to
	// measure.
	Rate int64

	// AppLimited says that the sender had nothing more to send when the
	// packet left, so that Rate may be below what the path can do.
	AppLimited bool
}

// Loss is what a loss detection found.
type Loss struct {
	// Bytes is how many bytes are newly found lost.
	Bytes int64

	// Inflight is how many bytes remain in flight.
	Inflight int64

	// Sent is when the newest of the lost packets left.
	Sent Time

	// Delivered is how many bytes the path has delivered so far.
	Delivered int64
}

// Inspection is a controller's state for people.
type Inspection struct {
	// Phase names the state of the algorithm, such as "slow start".
	Phase string

	// Window is the window in bytes, apart from a short reduction to see the
	// base RTT that is in force now.
	Window int64

	// Threshold is the window at which slow start ends, 0 without one.
	Threshold int64

	// Target is the delay that the algorithm steers to, or above which it
	// sees congestion; 0 without one.
	Target time.Duration

	// Cuts counts how often the window was reduced.
	Cuts uint64
}
