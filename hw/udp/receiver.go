package udp

import (
	"errors"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw/udp/internal/crypt"
	"github.com/weft-fabric/weft/hw/udp/internal/recovery"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// receiver is the receiving side of a connection: it puts the peer's stream together, and makes and sends the
// acknowledgements that are owed. Offsets count bytes of the stream:
//
//	consumed <= contig <= top <= limit <= consumed + size of the ring
type receiver struct {
	c      *Endpoint // immutable
	ring   ring
	opener *crypt.Open // nil without authorisation
	seen   recovery.Received
	have   recovery.Ranges // arrived above contig
	// contig: all below arrived. Written with the lease (release), read under the progress lease (acquire).
	contig atomic.Uint64
	top    uint64 // end of what arrived
	limit  uint64 // the peer's credit: up to where it may send
	wants  bool   // the peer has more than that

	pending   int             // packets that ask for an acknowledgement
	now       bool            // one is owed at once
	creditDue bool            // it has credit that the peer waits for: it goes with packets until one arrives
	owing     bool            // in stripe.owing
	ackDue    congestion.Time // 0: none is owed
	askedAt   congestion.Time // when a packet last came that asks for one
	quick     int             // how many in a row came soon after the one before
	largestAt congestion.Time // arrival of the packet with the largest number
	marked    uint32          // packets with ECN's mark
	peerMarks uint32          // the peer's count of them
	queued    bool            // in stripe.readyList or delivery.list
}

// owe notes that an acknowledgement is owed, at once or soon.
func (r *receiver) owe(now congestion.Time, atOnce bool) {
	r.now = r.now || atOnce
	switch {
	case r.owing:
	case r.now || r.pending >= ackEvery:
		r.owing = true
		r.c.s.owing = append(r.c.s.owing, r.c)
	case r.ackDue == 0:
		r.ackDue = now.Add(ackHold)
		r.c.schedule()
	}
}

// owes reports whether an acknowledgement is owed.
func (r *receiver) owes() bool { return r.pending > 0 || r.now || r.creditDue }

// asks notes that a packet came that asks for an acknowledgement.
func (r *receiver) asks(now congestion.Time) {
	r.pending++
	r.quick++
	if now.Sub(r.askedAt) >= quickAsks {
		r.quick = 0
	}
	r.askedAt = now
}

// spares reports whether a packet that leaves now goes without the acknowledgement that is owed: one for a single
// packet, while packets come so quickly that the next is due before the acknowledgement is. So two sides that go on
// answering each other acknowledge with every second packet (RFC 9000, section 13.2.2, recommends no more). The first
// quickRow answers carry it: the side that has sent them may compute for long then.
func (r *receiver) spares(now congestion.Time) bool {
	return r.pending == 1 && r.quick >= quickRow && !r.now && !r.creditDue && !r.wants && now.Sub(r.askedAt) < quickAsks
}

// acknowledge sends the acknowledgement if it is still owed.
func (r *receiver) acknowledge(now congestion.Time) {
	switch {
	case !r.c.alive() || !r.owes() || !r.seen.Any():
		return
	case r.creditDue, r.seen.Many() && r.c.tx.sent.Flying() == 0:
		r.now = true // it is not spared
		r.c.sendPing(now)
	default:
		r.sendAck(now)
	}
	r.c.schedule()
}

// data takes in a Data packet. b is changed.
func (s *stripe) data(now, at congestion.Time, from *sock.Addr, b []byte, marked bool) {
	var h wire.Header
	if h.Parse(b) != nil {
		s.i.malformed.Add(1)
		return
	}
	c := s.conn(h.CID)
	if c == nil || c.addr != *from || c.at() == dead {
		s.reset(now, from, &h)
		return
	}
	if c.at() == dialing {
		return // it has overtaken the Accept
	}
	if (h.Flags&wire.FlagAuth != 0) != (c.rx.opener != nil) {
		s.i.malformed.Add(1)
		return
	}
	r := &c.rx
	h.Number = wire.Near(h.Number, r.seen.Next())
	if r.seen.Check(h.Number) != recovery.New {
		return
	}
	frames := b[wire.HeaderSize:]
	if r.opener != nil {
		var err error
		if frames, err = r.opener.Open(b[:wire.HeaderSize], frames, h.Number); err != nil {
			s.i.malformed.Add(1)
			return
		}
	}
	c.take(now, at, &h, frames, marked)
}

// take takes in the frames of an authentic packet.
func (c *Endpoint) take(now, at congestion.Time, h *wire.Header, frames []byte, marked bool) {
	r := &c.rx
	newest := !r.seen.Any() || h.Number > r.seen.Largest()
	asks, closed, ok := c.handleFrames(now, at, frames, newest)
	if !ok || c.at() == dead {
		return
	}
	gap := newest && r.seen.Any() && h.Number != r.seen.Largest()+1 || !newest
	if r.seen.Add(h.Number) {
		r.largestAt = at
	}
	if marked {
		r.marked++
	}
	c.life.hear(now)
	if h.Flags&wire.FlagBlocked != 0 {
		r.wants = true
	}
	if asks {
		r.asks(now)
		c.rx.owe(now, h.Flags&wire.FlagAckNow != 0 || gap && r.seen.Gaps() || marked)
	}
	c.s.touch(c)
	if closed {
		r.now = true
		c.rx.sendAck(now)
		c.ended = true
	}
}

// end ends the connection if the peer closed it and all that it sent before is delivered.
func (c *Endpoint) end() {
	if c.ended && !c.rx.queued {
		c.die("closed by the peer")
	}
}

// handleFrames handles the frames of a packet. asks reports whether they ask for an acknowledgement, closed whether the
// peer closes; ok is false if one is malformed or cannot be taken in: then the packet counts as lost.
func (c *Endpoint) handleFrames(now, at congestion.Time, b []byte, newest bool) (asks, closed, ok bool) {
	f := &c.s.frame.in
	f.NearNumber, f.NearLimit, f.NearOffset = c.tx.sent.Number(), c.tx.limit, c.rx.contig.Load()
	for len(b) > 0 {
		rest, err := f.Next(b)
		if err != nil {
			c.i.malformed.Add(1)
			return false, false, false
		}
		switch f.Kind {
		case wire.KindAck:
			if !c.handleAck(now, at, &f.Ack, newest) {
				return false, false, false
			}
		case wire.KindStream:
			asks = true
			if !c.rx.handleStream(f.Offset, f.Data) {
				return false, false, false
			}
		case wire.KindPut:
			asks = true
			if !c.ops.handlePut(now, f) {
				return false, false, false
			}
		case wire.KindGet:
			asks = true
			if !c.ops.handleGet(now, f) {
				return false, false, false
			}
		case wire.KindData:
			asks = true
			if !c.ops.handleData(f) {
				return false, false, false
			}
		case wire.KindRefuse:
			asks = true
			c.ops.handleRefuse(f)
		case wire.KindPing:
			asks = true
		case wire.KindProbe:
			c.handleProbe(now, at, f.Data)
		case wire.KindClose:
			asks, closed = true, true
		}
		b = rest
	}
	return asks, closed, true
}

// handleAck handles an acknowledgement.
func (c *Endpoint) handleAck(now, at congestion.Time, a *wire.Ack, newest bool) bool {
	t := &c.tx
	marks := uint32(0)
	if d := a.Marked - c.rx.peerMarks; newest && int32(d) > 0 {
		marks, c.rx.peerMarks = d, a.Marked
	}
	err := t.sent.OnAck(now, at, a, marks, t.path)
	if errors.Is(err, recovery.ErrAck) {
		c.i.malformed.Add(1)
		c.die("%v", err)
		return false
	}
	c.arrived(t.sent.Acked)
	if a.Limit > t.limit {
		t.limit, t.wanting = a.Limit, false
		c.ops.reply()
	}
	if newest {
		c.open.Store(a.Open)
	}
	return true
}

// handleStream handles bytes of the stream.
func (r *receiver) handleStream(offset uint64, data []byte) bool {
	contig, end := r.contig.Load(), offset+uint64(len(data))
	if end > r.limit {
		r.c.i.malformed.Add(1)
		return false
	}
	if end <= contig {
		return true // a second copy
	}
	if err := r.ring.open(r.c.i.cfg.Window, r.c.i.maxRecord()); err != nil {
		r.c.i.logf("message from %s: %v", r.c.addr.String(), err)
		return false // it will come again
	}
	if offset < contig {
		data = data[contig-offset:]
		offset = contig
	}
	if offset > contig && r.have.Len() >= maxHoles {
		return false
	}
	r.ring.put(offset, data)
	r.top = max(r.top, end)
	if offset == contig && r.have.Len() == 0 {
		contig = end
	} else {
		r.have.Add(recovery.Span{From: offset, To: end})
		contig = r.have.Advance(contig)
	}
	r.contig.Store(contig)
	return true
}

// settle does what follows from what came in one batch.
func (c *Endpoint) settle(now congestion.Time) {
	t := &c.tx
	c.rx.offer()
	c.end()
	if !c.alive() {
		return
	}
	t.sent.Detect(now, t.path)
	c.resend(t.sent.Lost)
	if c.rx.wants && c.deliver.consumed.Load()+uint64(c.i.cfg.Window) > c.rx.limit {
		c.rx.creditDue = true
		c.rx.owe(now, true)
	}
	c.transmit(now)
}

// offer puts the connection on the list of those with something to deliver.
func (r *receiver) offer() {
	if r.queued || r.ring.b == nil || r.c.deliver.broken {
		return
	}
	if _, ok := r.c.record(); ok {
		r.queued = true
		r.c.s.readyList = append(r.c.s.readyList, r.c)
		r.c.s.ready.Add(1)
	}
}
