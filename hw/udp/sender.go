package udp

import (
	"math/rand/v2"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw/udp/internal/crypt"
	"github.com/weft-fabric/weft/hw/udp/internal/recovery"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// What a packet that asks for an acknowledgement carries.
const (
	carryStream uint8 = iota // Offset and Len of the stream
	carryPing
	carryProbe // Len is the packet's size, to find the MTU
	carryClose
	carryPut    // Offset and Len of operation Op
	carryData   // likewise, for the peer
	carryGet    // asks for operation Op
	carryRefuse // Offset is the peer's number of an operation
)

// sender is the sending side of a connection. Offsets count bytes of the
// stream:
//
//	acked <= next <= tail;  [acked, tail) is in the ring
//	next <= limit, tail <= acked + size of the ring
type sender struct {
	ring  sendRing
	tail  uint64 // end of what was posted
	next  uint64 // end of what was sent once
	acked uint64 // all below arrived
	limit uint64 // up to which the peer has room

	window uint64 // what the peer had room for at first: all below limit - window it has delivered

	done recovery.Ranges // arrived above acked
	lost recovery.Ranges // to be sent again

	sent recovery.Sent
	path *congestion.Path
	mtu  recovery.MTU
	seal *crypt.Seal // nil without authorisation

	dirty     bool   // in stripe.dirty
	ping      bool   // a ping is to be sent
	urgent    bool   // it asks for an answer at once
	confirms  uint64 // number of the ping that Confirm sent, 0: it waits for none
	wanting   bool   // a post found no room in the peer's window
	saidWant  uint64 // the limit for which the peer was asked for more (wire.FlagBlocked), plus one
	probes    int    // timeouts in a row without an answer
	skip      uint32 // packets until a number is skipped
	closing   bool   // a Close is to be sent when the stream has arrived
	closeSent int
	closed    bool            // the Close has arrived
	replies   []uint32        // answers to flushes that wait for room
	fence     bool            // what is posted waits until no operation is in progress
	burst     int             // posts in quick succession
	unfit     congestion.Time // since when a long record has waited for other slots, 0: none has
	lastPost  congestion.Time
	lastLong  congestion.Time // post of a long record
}

// random is the source of random numbers for congestion control.
type random struct{}

// Uint64 returns a random number.
func (random) Uint64() uint64 { return rand.Uint64() }

// overhead is what a packet carries besides stream bytes, without an Ack.
func (c *Endpoint) overhead() int {
	n := wire.HeaderSize + wire.StreamHeader
	if c.tx.seal != nil {
		n += wire.TagSize
	}
	return n
}

// waiting reports whether there is stream to send that the peer has room for.
func (t *sender) waiting() bool { return t.lost.Len() > 0 || t.next < min(t.tail, t.limit) }

// asks reports whether the last packet of size bytes that leave asks for an answer at once: when
// nothing else can leave before one comes.
func (t *sender) asks(size int64) bool {
	return t.path.Inflight()+size >= t.path.Control().Window() || t.wanting && !t.waiting()
}

// waiting reports whether there is anything to send.
func (c *Endpoint) waiting() bool { return c.tx.waiting() || c.ops.waiting() != nil }

// transmit sends what may be sent now.
func (c *Endpoint) transmit(now congestion.Time) { c.push(now, c.leastSent(now)) }

// push sends what may be sent now, but leaves less than rest bytes of the stream for later.
func (c *Endpoint) push(now congestion.Time, rest uint64) {
	t := &c.tx
	if !c.alive() {
		return
	}
	if len(t.sent.Forgotten) > 0 {
		c.recall()
	}
	if t.ping {
		c.sendPing(now)
	}
	for t.waiting() && t.sent.Room() && t.path.May(now) {
		if t.lost.Len() == 0 && min(t.tail, t.limit)-t.next < rest {
			c.markDirty()
			c.i.timerLoop.notify()
			break
		}
		if !c.sendTrain(now) {
			c.sendStream(now, 0)
		}
		now = c.s.freshen(now)
	}
	for t.sent.Room() && t.path.May(now) {
		o := c.ops.waiting()
		if o == nil {
			break
		}
		c.ops.send(now, o)
		now = c.s.freshen(now)
		if o = c.ops.waiting(); o != nil {
			c.ops.sendTrain(now, o)
		}
	}
	if !c.waiting() {
		if t.path.Open() {
			t.path.Limited()
		}
		c.maybeClose(now)
		c.probeMTU(now)
	}
	c.schedule()
}

// sendStream sends one packet of the stream: what was lost first.
func (c *Endpoint) sendStream(now congestion.Time, flags uint8) {
	t := &c.tx
	full := c.full()
	room := full - uint64(c.rx.ackMost(now))
	var span recovery.Span
	if t.lost.Len() > 0 {
		span = t.lost.Cut(room)
	} else {
		end := min(t.tail, t.limit)
		if end >= t.next+full && t.ring.full == full {
			if rest := t.ring.rest(t.next); end >= t.next+rest+full {
				end = t.next + rest // a train may follow
			}
		}
		span = recovery.Span{From: t.next, To: min(end, t.next+room)}
		t.next = span.To
	}
	c.send(now, carryStream, span, flags)
}

// sendPing sends something that asks for an acknowledgement.
func (c *Endpoint) sendPing(now congestion.Time) {
	flags := uint8(0)
	if c.tx.urgent {
		flags = wire.FlagAckNow
	}
	c.tx.ping, c.tx.urgent = false, false
	c.send(now, carryPing, recovery.Span{}, flags)
}

// probeMTU sends a packet that is larger than what is known to get through.
func (c *Endpoint) probeMTU(now congestion.Time) {
	t := &c.tx
	if !t.sent.Room() || c.half || c.at() != up {
		return
	}
	if size := t.mtu.Next(now); size > 0 {
		t.mtu.Sending(size)
		c.send(now, carryProbe, recovery.Span{To: uint64(size)}, wire.FlagAckNow)
	}
}

// maybeClose sends a Close when the stream has arrived.
func (c *Endpoint) maybeClose(now congestion.Time) {
	t := &c.tx
	if t.closing && t.acked == t.tail && len(t.replies) == 0 && t.closeSent == 0 {
		t.closeSent++
		c.rx.now = c.rx.seen.Any() // what has arrived is acknowledged now or never
		c.send(now, carryClose, recovery.Span{}, wire.FlagAckNow)
	}
}

// resend has what lost packets carried sent again.
func (c *Endpoint) resend(list []recovery.Packet) {
	t := &c.tx
	if len(list) > 0 {
		c.rx.now = c.rx.seen.Any() // they may have carried an acknowledgement
	}
	for n := range list {
		p := &list[n]
		switch p.Kind {
		case carryStream:
			span := recovery.Span{From: max(p.Offset, t.acked), To: p.Offset + uint64(p.Len)}
			t.lost.AddWithout(span, &t.done)
		case carryPing:
			t.ping = true
		case carryProbe:
			t.mtu.Lost(int(p.Len))
		case carryPut, carryData:
			if o := c.ops.find(p.Op); o != nil {
				o.lost.AddWithout(recovery.Span{From: max(p.Offset, o.moved), To: p.Offset + uint64(p.Len)}, &o.done)
			}
		case carryGet:
			if o := c.ops.find(p.Op); o != nil && o.kind == opGet {
				o.next = 0
			}
		case carryRefuse:
			if t.sent.Room() {
				c.send(c.i.now(), carryRefuse, recovery.Span{From: p.Offset}, 0)
			}
		case carryClose:
			if t.closeSent < closeRepeat {
				t.closeSent = 0
			} else {
				t.closed = true
			}
		}
	}
}

// recall has sent again what the table of packets had no room for.
func (c *Endpoint) recall() {
	t := &c.tx
	for n := range t.sent.Forgotten {
		t.path.Discard(int64(t.sent.Forgotten[n].Size))
	}
	c.resend(t.sent.Forgotten)
	t.sent.Forgotten = t.sent.Forgotten[:0]
}

// arrived takes in what an acknowledgement says.
func (c *Endpoint) arrived(list []recovery.Packet) {
	t := &c.tx
	for n := range list {
		p := &list[n]
		c.rx.seen.Known(p.Reported)
		switch p.Kind {
		case carryStream:
			span := recovery.Span{From: p.Offset, To: p.Offset + uint64(p.Len)}
			if span.To > t.acked {
				span.From = max(span.From, t.acked)
				t.done.Add(span)
			}
			t.lost.Remove(span)
			c.through(p)
		case carryProbe:
			t.mtu.Arrived(int(p.Len))
		case carryPut, carryData:
			c.through(p)
			o := c.ops.find(p.Op)
			if o == nil || !o.arrived(recovery.Span{From: p.Offset, To: p.Offset + uint64(p.Len)}) {
				break
			}
			if o.kind == opPut {
				c.ops.complete(o, nil)
				c.ops.flushed()
			} else {
				c.ops.end(o)
			}
		case carryClose:
			t.closed = true
		}
	}
	t.acked = t.done.Advance(t.acked)
	if len(list) > 0 {
		t.probes = 0
		if t.mtu.Answered() {
			c.i.logf("%s: large packets do not get through any longer", c.addr.String())
		}
	}
}

// through takes in that a packet got through.
func (c *Endpoint) through(p *recovery.Packet) {
	if p.Late() {
		c.tx.mtu.Late(int(p.Size))
	} else {
		c.tx.mtu.Arrived(int(p.Size))
	}
}

// refused takes in that the kernel did not send a datagram. If it was too
// large, the interface's MTU has shrunk; joined datagrams give EINVAL then.
func (c *Endpoint) refused(f *sock.Failure) {
	if f.Err != unix.EMSGSIZE && f.Err != unix.EINVAL || f.Size <= minPacket || c.at() == dialing {
		return
	}
	most := f.Size - 1
	if mtu, err := sock.RouteMTU(&c.addr); err == nil && mtu-sock.Overhead(&c.addr) < most {
		most = mtu - sock.Overhead(&c.addr)
	} else if f.Size <= c.tx.mtu.Size() {
		most = minPacket // it did work before
	}
	c.tx.mtu.TooBig(most)
}

// onTimer does what is due.
func (c *Endpoint) onTimer(now congestion.Time) {
	t := &c.tx
	switch c.at() {
	case dead:
		return
	case dialing:
		c.dial.redial(now)
		return
	}
	if c.life.expired(now) {
		return
	}
	if c.rx.ackDue != 0 && now >= c.rx.ackDue {
		c.rx.now = true
		c.rx.acknowledge(now)
	}
	if at := t.sent.Timer(t.path, ackHold); at != 0 && now >= at {
		if t.sent.LossTimer() {
			t.sent.Detect(now, t.path)
			c.resend(t.sent.Lost)
		} else {
			c.timeout(now)
		}
	}
	c.transmit(now)
}

// timeout is the retransmission timer: first a probe, then all is lost.
func (c *Endpoint) timeout(now congestion.Time) {
	t := &c.tx
	t.probes++
	if t.probes > 1 {
		largest := 0
		t.sent.Timeout(now, t.path)
		for n := range t.sent.Lost {
			largest = max(largest, int(t.sent.Lost[n].Size))
		}
		t.mtu.Timeout(largest)
		c.resend(t.sent.Lost)
		t.ping, t.urgent = true, true
		return
	}
	p := t.sent.Oldest()
	switch {
	case p == nil:
	case t.waiting() && t.sent.Room():
		c.sendStream(now, wire.FlagAckNow)
	case p.Kind == carryStream && t.sent.Room():
		// The oldest bytes once more, as far as they are still wanted.
		span := recovery.Span{From: max(p.Offset, t.acked), To: p.Offset + uint64(p.Len)}
		span.To = min(span.To, span.From+c.full()-uint64(c.rx.ackMost(now)))
		if span.From < span.To {
			c.send(now, carryStream, span, wire.FlagAckNow)
			return
		}
		fallthrough
	case p.Kind == carryPut || p.Kind == carryData || p.Kind == carryGet:
		c.resend([]recovery.Packet{*p}) // a copy under another number
		fallthrough
	default:
		t.ping, t.urgent = true, true
	}
}

// deadline returns when the connection next has something due, 0: never.
func (c *Endpoint) deadline() congestion.Time {
	t := &c.tx
	switch c.at() {
	case dead:
		return 0
	case dialing:
		return c.dial.next
	}
	d := earliest(c.rx.ackDue, t.sent.Timer(t.path, ackHold))
	if t.path.Open() && t.sent.Room() && c.waiting() {
		d = earliest(d, t.path.Next())
	}
	if c.half {
		d = earliest(d, c.dial.expires)
	}
	if c.life.asked != 0 {
		d = earliest(d, c.life.asked.Add(c.i.cfg.PeerTimeout))
	}
	if c.life.hints > 0 {
		d = earliest(d, c.life.hintAt.Add(hintTime))
	}
	return d
}

// earliest is the lesser of two times, of which 0 means never.
func earliest(a, b congestion.Time) congestion.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
