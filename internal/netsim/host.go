package netsim

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// Host is a host's processor, which everything on that host shares. Packets wait
// in its socket until it polls, are taken in all at once, and are answered as
// hw/udp answers them: every 64th packet, those that ask for it, and the rest
// after a millisecond. It reports to the congestion control for how long it kept
// acknowledgements back.
type Host struct {
	// Work is what a packet takes that is sent or received.
	Work time.Duration

	// Away is for how long the host's programs do not run now and then, because
	// other programs do, and Every the mean time from the end of one such time to the
	// beginning of the next. An Every of 0 means that they always run.
	Away, Every time.Duration

	// Room is how many bytes wait at most; what comes beyond is lost. Senders
	// count on half of it. 0 is no limit for packets, and nothing for senders to
	// count on.
	Room int64

	// Lost counts the packets for which there was no room.
	Lost int64

	net     *Net
	free    congestion.Time // when it has done what it has begun
	waiting []waiting
	bytes   int64
	polling bool
}

// waiting is a packet in a host's socket.
type waiting struct {
	packet Packet
	at     congestion.Time
	to     resident
}

// resident is what runs on a host.
type resident interface {
	// take takes in a packet that arrived at a time, now or before.
	take(p *Packet, at congestion.Time)
	// settle does what follows from what was taken in.
	settle()
}

// How hw/udp answers.
const (
	ackEvery = 64
	ackHold  = time.Millisecond
)

// Host makes a host of the simulation.
func (n *Net) Host(h Host) *Host {
	h.net = n
	if h.Every > 0 {
		n.At(n.now.Add(n.gap(h.Every)), h.leave)
	}
	return &h
}

// gap draws a time of a Poisson process.
func (n *Net) gap(mean time.Duration) time.Duration {
	return time.Duration(n.Rand.ExpFloat64() * float64(mean))
}

// leave has the host's programs not run for a while.
func (h *Host) leave() {
	h.free = max(h.free, h.net.now).Add(h.Away)
	h.net.At(h.free.Add(h.net.gap(h.Every)), h.leave)
}

// work has the host be busy with so many packets more.
func (h *Host) work(packets int) {
	if h != nil {
		h.free = max(h.free, h.net.now).Add(time.Duration(packets) * h.Work)
	}
}

// busy returns when the host can do something more, now or later.
func (h *Host) busy() congestion.Time {
	if h == nil {
		return 0
	}
	return h.free
}

// deliver brings a packet to something on a host. Without a host it is taken in
// at once.
func (n *Net) deliver(h *Host, to resident, p *Packet) {
	if h == nil {
		to.take(p, n.now)
		to.settle()
		return
	}
	if h.Room > 0 && h.bytes+p.Size > h.Room {
		h.Lost++
		return
	}
	h.bytes += p.Size
	h.waiting = append(h.waiting, waiting{packet: *p, at: n.now, to: to})
	h.poll()
}

// poll makes sure that the host polls its socket when it can.
func (h *Host) poll() {
	if !h.polling {
		h.polling = true
		h.net.at(h.free, h, nil)
	}
}

// handle is a poll of the socket.
func (h *Host) handle(*Packet) {
	h.polling = false
	if h.free > h.net.now {
		h.poll() // it has lost its processor meanwhile
		return
	}
	all := h.waiting
	h.waiting, h.bytes = nil, 0
	h.work(len(all))
	for i := range all {
		all[i].to.take(&all[i].packet, all[i].at)
	}
	for i := range all {
		all[i].to.settle() // a second time does nothing
	}
	if h.waiting == nil {
		h.waiting = all[:0]
	}
}
