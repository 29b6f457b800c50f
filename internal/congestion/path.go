package congestion

import "time"

// Path is what a transport drives: one path's round-trip time, delivery rate,
// window and pace. For each packet:
//
//	if path.May(now) { state := path.OnSend(now, size) … }
//
// keeping state with the packet; for each arriving acknowledgement
//
//	path.OnAck(now, &state, size, marked)   // for each newly acknowledged packet
//	path.EndAck(now, rtt)
//
// and for each detection of losses
//
//	path.OnLoss(now, &state, size)          // for each packet lost
//	path.EndLoss(now)
//
// A segment of a long operation is a packet too. Path is not safe for
// concurrent use and does not allocate.
type Path struct {
	rtt       Estimator
	delivery  Delivery
	pacer     Pacer
	control   Controller
	stats     *Stats
	inflight  int64
	ack       Sample
	lost      Loss
	judge     Judge
	cuts      uint64        // the controller's, when a probe was last judged
	ackDelays filter        // greatest times by which hosts delayed acknowledgements, negated
	hold      time.Duration // how long this acknowledgement was
	lately    lately        // how fast it delivers
	oneway    oneway        // what of the queues is on the way back
	there     uint32        // how long this acknowledgement's packet took, by two clocks
	timed     bool          // there is known
	heard     Time          // when an acknowledgement last came, or what is in flight began to leave
	spare     int64
	extra     int64 // of the window, for what hosts hold
}

// ackDelayWindow is how long a time by which a host delayed an acknowledgement counts:
// several of a scheduler's time slices.
const ackDelayWindow = 200 * time.Millisecond

// longWait is for how long a packet may have to wait, beyond a round trip, by the pace at
// which the one before left. Shorter waits are part of how the algorithms spread packets.
const longWait = time.Millisecond

// judgeFresh is how long a sample counts in judging a path. Probes come every
// 0.1 s to a peer that is congested.
const judgeFresh = 300 * time.Millisecond

// NewPath returns a path with nothing in flight. Every RTT and loss is reported
// to stats too, unless that is nil.
func NewPath(cfg Config, rnd Rand, stats *Stats) (*Path, error) {
	control, err := New(cfg, rnd)
	if err != nil {
		return nil, err
	}
	return &Path{
		rtt: NewEstimator(&cfg), control: control, stats: stats,
		pacer: Pacer{Burst: defaultBurst}, judge: NewJudge(&cfg, judgeFresh),
	}, nil
}

// defaultBurst is about what a timer of the kernel is late.
const defaultBurst = 100 * time.Microsecond

// RTT returns the path's estimator, to be read.
func (p *Path) RTT() *Estimator { return &p.rtt }

// Control returns the path's controller, to be read.
func (p *Path) Control() Controller { return p.control }

// Inflight returns how many bytes are in flight.
func (p *Path) Inflight() int64 { return p.inflight }

// SetSpare sets for how many bytes the peer's host has room that have arrived
// and were not yet polled. Default 0.
func (p *Path) SetSpare(bytes int64) { p.spare = max(bytes, 0) }

// Hold reports that an acknowledgement that comes now was delayed for d by the two
// hosts, because their programs did not run: that is no part of the round-trip
// time. Meanwhile what has arrived counts as in flight. So as long as no
// acknowledgement comes, and for no longer than hosts delayed one lately, packets
// go on leaving beyond the controller's window, as fast as the path delivered
// lately and a quarter more, as far as the peer's host has room (extra_acked in
// draft-ietf-ccwg-bbr, section 5.5.9, has the same aim). A window that were larger
// all that time would be a queue in the network: after a pause the controller sees
// an empty path and paces for it. It counts from the next EndAck on. Controllers
// without a pace have a window that is meant as it is.
func (p *Path) Hold(now Time, d time.Duration) {
	p.hold = max(d, 0)
	p.ackDelays.add(now, ackDelayWindow, -int64(p.hold))
}

// AckDelay returns the longest time by which hosts delayed an acknowledgement lately.
func (p *Path) AckDelay() time.Duration { return time.Duration(-p.ackDelays.get()) }

// beyond is how many bytes per second leave beyond the controller's window.
func (p *Path) beyond() int64 { return p.lately.get() * 5 / 4 }

// Open reports whether the window has room, or will have without an
// acknowledgement.
func (p *Path) Open() bool { return p.inflight < p.control.Window()+p.extra }

// Window returns how many bytes may be in flight with those that hosts hold.
func (p *Path) Window() int64 { return p.control.Window() + p.extra }

// May reports whether a packet may leave now. If it may not though the path is
// open, it may at [Path.Next].
func (p *Path) May(now Time) bool { return p.Open() && p.Next() <= now }

// Next returns when the pace lets the next packet leave, and without
// acknowledgements the window. It is for a path that is open.
func (p *Path) Next() Time {
	next := p.pacer.Next()
	if beyond := p.inflight - p.control.Window(); beyond >= 0 && p.extra > 0 {
		next = max(next, p.heard.Add(airtime(beyond+1, p.beyond())))
	}
	return next
}

// OnSend accounts for a packet that leaves now and returns the state to keep
// with it. A retransmission is a packet of its own.
func (p *Path) OnSend(now Time, size int64) PacketState {
	state := p.delivery.OnSend(now, p.inflight)
	if p.inflight == 0 {
		p.heard = now
	}
	p.inflight += size
	p.control.OnSend(now, size, p.inflight)
	p.pacer.OnSend(now, size, p.control.PacingRate())
	return state
}

// Room returns how many packets of size bytes may leave at once, up to most:
// after each of them but the last, [Path.May] would still be true.
func (p *Path) Room(now Time, size int64, most int) int {
	left := p.control.Window() - p.inflight
	if p.extra > 0 && p.inflight > 0 { // else time begins with the first of them
		left += min(max(product(p.beyond(), now.Sub(p.heard)), 0), p.extra)
	}
	if left <= 0 || most <= 0 {
		return 0
	}
	if n := (left + size - 1) / size; n < int64(most) {
		most = int(n)
	}
	return p.pacer.Room(now, size, p.control.PacingRate(), most)
}

// OnSendMany is OnSend of n packets of size bytes each, which have the same state.
// Room has said that so many may leave.
func (p *Path) OnSendMany(now Time, size int64, n int) PacketState {
	state := p.OnSend(now, size)
	if n > 1 {
		rest := size * int64(n-1)
		p.inflight += rest
		p.control.OnSend(now, rest, p.inflight)
		p.pacer.OnSend(now, rest, p.control.PacingRate())
	}
	return state
}

// Limited reports that the sender has nothing to send though it may.
func (p *Path) Limited() { p.delivery.Limited(p.inflight) }

// OnAck accounts for one newly acknowledged packet of size bytes, which arrived
// with an ECN mark or not.
func (p *Path) OnAck(now Time, state *PacketState, size int64, marked bool) {
	p.OnAckMany(now, state, size, 1)
	if marked {
		p.ack.Marked += size
	}
}

// OnAckMany is OnAck of n packets of size bytes each that have the same state, without
// a mark.
func (p *Path) OnAckMany(now Time, state *PacketState, size int64, n int) {
	p.delivery.OnAck(now, state, size, n)
	all := size * int64(n)
	p.inflight = max(p.inflight-all, 0)
	p.ack.Bytes += all
}

// Arrival reports when the packet arrived that the acknowledgement measures a round trip of, less when it left: by
// the peer's clock and the own one, in ns modulo 2^32. It counts for the next EndAck. Whatever a peer says, the delay
// of the way there is taken for what the round-trip time allows.
func (p *Path) Arrival(later uint32) { p.there, p.timed = later, true }

// EndAck ends an acknowledgement. rtt is the round-trip time it measures, less
// what the peer delayed it, or 0 if it measures none: when the packet that
// made the peer answer was acknowledged before, or sent twice under one number.
// Without a newly acknowledged packet EndAck does nothing.
func (p *Path) EndAck(now Time, rtt time.Duration) {
	s := &p.ack
	timed := p.timed
	if p.timed = false; s.Bytes == 0 {
		return
	}
	var newest PacketState
	size := p.delivery.newestSize
	s.Rate, newest = p.delivery.Rate(now, p.rtt.Min())
	p.rtt.rateSeen(now, s.Rate)
	if p.rtt.samples > 0 { // what probes gave is for the timer only
		s.SRTT, s.RTTVAR = p.rtt.srtt, p.rtt.rttvar
	}
	s.RTT = p.rtt.Add(now, rtt, size)
	s.Base = p.rtt.Base()
	s.Inflight = p.inflight
	s.Sent, s.PriorDelivered, s.AppLimited = newest.Sent, newest.delivered, newest.appLimited
	s.Delivered = p.delivery.delivered
	if s.RTT > 0 {
		p.judge.OnInline(now, s.RTT)
		if timed {
			s.Reverse = p.oneway.add(now, p.there, s.RTT, s.Base)
		}
	}
	p.control.OnAck(now, s)
	if s.RTT > 0 && p.pacer.Next().Sub(now) > max(s.RTT, longWait) {
		p.pacer.Quicken(now, p.control.PacingRate())
	}
	p.heard = now
	p.lately.add(now, s.Delivered, p.hold, p.AckDelay())
	p.hold = 0
	p.extra = 0
	if p.control.PacingRate() > 0 {
		p.extra = min(product(p.beyond(), p.AckDelay()), p.spare)
	}
	if p.stats != nil && s.RTT > 0 {
		p.stats.Add(now, s.RTT, p.control.Window())
	}
	p.ack = Sample{}
}

// OnLoss accounts for one packet of size bytes that was found lost.
func (p *Path) OnLoss(now Time, state *PacketState, size int64) {
	p.inflight = max(p.inflight-size, 0)
	p.lost.Bytes += size
	p.lost.Sent = max(p.lost.Sent, state.Sent)
	if p.stats != nil {
		p.stats.Lose(now)
	}
}

// EndLoss ends a detection of losses. Without a loss it does nothing.
func (p *Path) EndLoss(now Time) {
	l := &p.lost
	if l.Bytes == 0 {
		return
	}
	l.Inflight, l.Delivered = p.inflight, p.delivery.delivered
	p.control.OnLoss(now, l)
	p.lost = Loss{}
}

// OnTimeout reports that the retransmission timer ran out. What it found lost is
// reported by OnLoss and EndLoss.
func (p *Path) OnTimeout(now Time) {
	p.rtt.Backoff()
	p.control.OnTimeout(now)
}

// Discard takes size bytes out of flight of which nothing will be known.
func (p *Path) Discard(size int64) { p.inflight = max(p.inflight-size, 0) }

// OnProbe takes in a probe of the path, lost if its rtt is 0. Where data
// measures the path itself its controller has judged already. Otherwise a probe
// that shows congestion reduces the window: by a quarter if probes queue, by a
// half if only data does. A path without data takes its timer from probes.
//
// It returns the verdict, for a choice between paths.
func (p *Path) OnProbe(now Time, rtt time.Duration) Verdict {
	if rtt > 0 {
		p.judge.OnProbe(now, rtt)
		p.rtt.seed(rtt)
	} else {
		p.judge.OnProbeLost(now)
	}
	verdict := p.judge.Verdict(now)
	if cuts := p.control.Inspect().Cuts; cuts != p.cuts {
		p.cuts = cuts // it has reacted since the last probe
		return verdict
	}
	if factor := verdict.Factor(); factor < 1 {
		p.control.Reduce(now, factor)
		p.cuts = p.control.Inspect().Cuts
	}
	return verdict
}

// Verdict returns what probes and data say about the path.
func (p *Path) Verdict(now Time) Verdict { return p.judge.Verdict(now) }
