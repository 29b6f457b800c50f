package netsim

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// Packet is a packet on its way. Links own it from Send until it arrives or is
// dropped; it is used again afterwards.
type Packet struct {
	// Size is the packet's bytes on the wire.
	Size int64

	// Number is the sender's, for the receiver.
	Number uint64

	// Stamp is the sender's or the receiver's too.
	Stamp congestion.Time

	// Data are the bytes of a probe.
	Data [64]byte

	// Marked says that a queue set ECN's congestion experienced.
	Marked bool

	// Asks says that the sender's window is full: it waits for the answer.
	Asks bool

	route Route
	hop   int
	to    receiver
	next  *Packet
}

// receiver takes packets at the end of their route. The packet is given back
// when receive returns.
type receiver interface {
	receive(p *Packet)
}

// Route is the links that a packet crosses, in order.
type Route []*Link

// packet returns an empty packet.
func (n *Net) packet() *Packet {
	p := n.free
	if p == nil {
		return new(Packet)
	}
	n.free = p.next
	*p = Packet{}
	return p
}

func (n *Net) release(p *Packet) {
	p.next = n.free
	n.free = p
}

// send puts a packet on its route.
func (n *Net) send(p *Packet, route Route, to receiver) {
	p.route, p.hop, p.to = route, 0, to
	if len(route) == 0 {
		n.at(n.now, n, p)
		return
	}
	route[0].handle(p)
}

// handle delivers a packet that crossed no link.
func (n *Net) handle(p *Packet) {
	p.to.receive(p)
	n.release(p)
}

// Link carries packets one way: through a queue, out at Rate, and over a wire
// that takes Delay.
type Link struct {
	// Rate is in bytes per second, above 0.
	Rate int64

	// Delay is the wire's.
	Delay time.Duration

	// Burst is how many bytes leave at once after the link was idle for as long
	// as they would have taken: the bucket of Linux' tbf and of policers.
	Burst int64

	// Limit is how many bytes the queue holds, 0 for no limit. A packet that
	// finds more waiting is dropped.
	Limit int64

	// Mark is how many waiting bytes make the queue mark packets, 0 for never.
	Mark int64

	// Loss is the share of packets that the wire loses, and Reorder the share
	// that it holds back by ReorderDelay, so that others overtake them.
	Loss, Reorder float64
	ReorderDelay  time.Duration

	// OnQueue, if set, sees how long each packet waits that is taken in.
	OnQueue func(now congestion.Time, wait time.Duration)

	// Counters. Bytes and Packets left the queue, Dropped found it full, Lost
	// were lost by the wire.
	Bytes, Packets, Dropped, Lost int64

	net  *Net
	busy congestion.Time // when the last byte in the queue will have left, or a full bucket's time before now
}

// Link makes a link of the simulation.
func (n *Net) Link(l Link) *Link {
	l.net = n
	return &l
}

// Queue returns how many bytes wait. Because a queue leaves at the link's rate,
// that is the time until it is empty times the rate.
func (l *Link) Queue() int64 {
	if l.busy <= l.net.now {
		return 0
	}
	return int64(float64(l.busy.Sub(l.net.now)) / float64(time.Second) * float64(l.Rate))
}

// airtime is what bytes take at the link's rate.
func (l *Link) airtime(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / float64(l.Rate) * float64(time.Second))
}

// Wait returns how long a packet that comes now waits before it leaves.
func (l *Link) Wait() time.Duration { return max(l.busy.Sub(l.net.now), 0) }

// handle takes a packet into the queue.
func (l *Link) handle(p *Packet) {
	n := l.net
	queue := l.Queue()
	if l.Limit > 0 && queue+p.Size > l.Limit {
		l.Dropped++
		n.release(p)
		return
	}
	if l.Mark > 0 && queue > l.Mark {
		p.Marked = true
	}
	if l.OnQueue != nil {
		l.OnQueue(n.now, l.Wait())
	}
	l.busy = max(l.busy, n.now.Add(-l.airtime(l.Burst))).Add(l.airtime(p.Size))
	l.Bytes += p.Size
	l.Packets++
	if l.Loss > 0 && n.Rand.Float64() < l.Loss {
		l.Lost++
		n.release(p)
		return
	}
	arrival := max(l.busy, n.now).Add(l.Delay)
	if l.Reorder > 0 && n.Rand.Float64() < l.Reorder {
		arrival = arrival.Add(l.ReorderDelay)
	}
	p.hop++
	if p.hop < len(p.route) {
		n.at(arrival, p.route[p.hop], p)
		return
	}
	n.at(arrival, n, p)
}

// takes is how long a packet of size bytes takes over a route if nothing else comes on
// its way beside what waits now.
func (r Route) takes(size int64) time.Duration {
	d := time.Duration(0)
	for _, l := range r {
		d += l.Wait() + l.airtime(size) + l.Delay
	}
	return d
}
