package udp

import (
	"math/rand/v2"

	"github.com/weft-fabric/weft/hw/udp/internal/recovery"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
)

// frameScratch is where a stripe parses and builds frames.
type frameScratch struct {
	in  wire.Frame
	ack wire.Ack
}

// skipFrom and skipUpTo bound how many packets go between two numbers that are
// skipped, so that a peer that acknowledges what it did not get is found.
const (
	skipFrom = 32
	skipUpTo = 512
)

// numbers returns how many packets, n or more, have numbers that follow one another, and
// skips a number before them if it would be time among them.
func (t *sender) numbers(n uint32) uint32 {
	if t.skip < n {
		t.skip = max(n, skipFrom+rand.Uint32N(skipUpTo-skipFrom))
		if t.sent.Number() > 0 {
			t.sent.Skip()
		}
	}
	return t.skip
}

// number has the next packet take a number.
func (t *sender) number() {
	t.numbers(1)
	t.skip--
}

// head is the header of the next packet.
func (c *Endpoint) head(flags uint8) wire.Header {
	if c.tx.seal != nil {
		flags |= wire.FlagAuth
	}
	if c.tx.wanting {
		flags |= wire.FlagBlocked
		c.tx.saidWant = c.tx.limit + 1
	}
	return wire.Header{
		Stripe: c.peer.Stripe, Source: c.s.number, Flags: flags,
		CID: c.peer.CID, Number: c.tx.sent.Number(),
	}
}

// header starts a packet in b.
func (c *Endpoint) header(b []byte, flags uint8) {
	h := c.head(flags)
	h.Put(b)
}

// send sends one packet that asks for an acknowledgement, with the
// acknowledgement that is owed. There is room for it in the table of packets,
// but for pings and closes, which are few.
func (c *Endpoint) send(now congestion.Time, kind uint8, span recovery.Span, flags uint8) {
	c.emit(now, kind, span, flags, nil)
}

// sendPiece sends one packet of an operation.
func (c *Endpoint) sendPiece(now congestion.Time, kind uint8, span recovery.Span, o *operation) {
	c.emit(now, kind, span, 0, o)
}

// emit builds the packet of send and sendPiece, gives it to the stripe's batch, and enters it into the table of
// packets.
func (c *Endpoint) emit(now congestion.Time, kind uint8, span recovery.Span, flags uint8, o *operation) {
	t, s := &c.tx, c.s
	t.number()
	p := recovery.Packet{Kind: kind, Offset: span.From}
	if span.To > span.From {
		p.Len = uint32(span.To - span.From)
	}
	ack := c.rx.ackRoom(now)
	if ack > 0 {
		p.Reported = c.rx.seen.Report()
	}
	size := wire.HeaderSize + ack
	var tail []byte
	switch kind {
	case carryStream:
		size += wire.StreamHeader
	case carryPut:
		size += wire.PutHeader
		tail = sliceOf(o.segs, span.From, int(p.Len))
		p.Op = o.id
	case carryData:
		size += wire.DataHeader
		tail = sliceOf(o.segs, 0, int(p.Len))
		p.Op = o.id
	case carryGet:
		size += wire.GetSize
		p.Op = uint32(span.From)
	case carryRefuse:
		size += wire.RefuseSize
	case carryPing:
		size += wire.PingSize
	case carryProbe:
		size = int(p.Len)
		if t.seal != nil {
			size -= wire.TagSize
		}
	case carryClose:
		size += wire.CloseSize
	}
	total := size + len(tail)
	if kind == carryStream {
		total += int(p.Len)
	}
	if t.seal != nil {
		total += wire.TagSize
	}
	if kind != carryProbe {
		p.Size = uint32(total)
		ends := kind == carryPut && span.To == o.total // nothing but the answer says that it is done
		if ends || t.asks(int64(total)) {
			flags |= wire.FlagAckNow
		}
	}
	p.Asked = flags&wire.FlagAckNow != 0
	if s.out.Full(total) {
		s.flush()
	}
	b := s.out.Take(total)[:size]
	c.header(b, flags)
	c.frames(b, ack, kind, span, o)
	if kind == carryStream {
		if tail = t.ring.piece(span.From, int(p.Len)); len(tail) < int(p.Len) {
			b, tail = t.ring.appendTo(b, span.From, int(p.Len)), nil
		} else if len(tail) <= shortTail && t.seal == nil {
			b, tail = append(b, tail...), nil
		}
	}
	c.ship(b, tail, kind == carryProbe)
	if p.Size > 0 {
		p.Flight = t.path.OnSend(now, int64(total))
	} else {
		p.Flight.Sent = now
	}
	t.sent.Add(now, p)
	if c.life.asked == 0 {
		c.life.asked = now
	}
}

// frames writes the frames of a packet behind its header in b, the first an acknowledgement
// of ack bytes if that is not 0; stream data follows b.
func (c *Endpoint) frames(b []byte, ack int, kind uint8, span recovery.Span, o *operation) {
	at := wire.HeaderSize + c.rx.putAck(b[wire.HeaderSize:], ack)
	c.rx.creditDue = false
	switch kind {
	case carryStream:
		wire.PutStream(b[at:], span.From)
	case carryPut:
		wire.PutPut(b[at:], o.id, o.key, o.addr+span.From, int(span.To-span.From))
	case carryData:
		wire.PutData(b[at:], o.theirs, span.From, int(span.To-span.From))
	case carryGet:
		o = c.ops.find(uint32(span.From))
		wire.PutGet(b[at:], o.id, o.key, o.addr, o.total)
	case carryRefuse:
		wire.PutRefuse(b[at:], uint32(span.From), wire.RefuseKey)
	case carryPing:
		wire.PutPing(b[at:])
	case carryProbe:
		wire.PutPing(b[at:])
		clear(b[at+wire.PingSize:])
	case carryClose:
		wire.PutClose(b[at:], wire.CloseNormal, c.tx.tail)
	}
}

// shortTail is what is copied behind the head of a packet of the stream rather
// than have the kernel read two pieces.
const shortTail = 256

// ship gives a packet to the socket, sealed if there is a key. b has room for
// tail and tag then.
func (c *Endpoint) ship(b, tail []byte, alone bool) {
	t, s := &c.tx, c.s
	if t.seal == nil {
		s.out.Add(s.socket, &c.addr, c.owner(), b, tail, alone)
		return
	}
	n := len(b)
	b = b[:n+len(tail)]
	copy(b[n:], tail)
	sealed, err := t.seal.Seal(b[:wire.HeaderSize], b[wire.HeaderSize:], t.sent.Number())
	if err != nil {
		c.die("%v", err)
		return
	}
	s.out.Add(s.socket, &c.addr, c.owner(), b[:wire.HeaderSize+len(sealed)], nil, alone)
}

// sendAck sends an acknowledgement alone. It is not acknowledged itself.
func (r *receiver) sendAck(now congestion.Time) {
	t, s := &r.c.tx, r.c.s
	t.number()
	ack := r.makeAck(now)
	size := wire.HeaderSize + ack
	total := size
	if t.seal != nil {
		total += wire.TagSize
	}
	if s.out.Full(total) {
		s.flush()
	}
	b := s.out.Take(total)[:size]
	r.c.header(b, 0)
	r.putAck(b[wire.HeaderSize:], ack)
	r.c.ship(b, nil, false)
	t.sent.Void()
}

// ackRoom makes the acknowledgement that is owed if it is to go with something now, and
// returns its size, else 0.
func (r *receiver) ackRoom(now congestion.Time) int {
	if !r.owes() || r.spares(now) {
		return 0
	}
	return r.makeAck(now)
}

// makeAck makes an acknowledgement and returns its size, 0 if there is nothing to acknowledge.
func (r *receiver) makeAck(now congestion.Time) int {
	if !r.seen.Any() {
		return 0
	}
	a := &r.c.s.frame.ack
	r.seen.Fill(a)
	a.Arrived, a.Delay = uint32(r.largestAt), now.Sub(r.largestAt)
	a.Limit, a.Marked, a.Open = r.newLimit(), r.marked, r.c.i.eager.Load()
	return a.Size()
}

// ackMost is the greatest size of the acknowledgement that is owed, if it is sent now: what is delivered meanwhile may
// add a new limit to it.
func (r *receiver) ackMost(now congestion.Time) int {
	n := r.ackRoom(now)
	if n > 0 && r.c.s.frame.ack.Limit == 0 {
		n += wire.LimitSize
	}
	return n
}

// newLimit is the peer's new credit, up to where it may send, if that is enough more than before, else 0.
func (r *receiver) newLimit() uint64 {
	window := uint64(r.c.i.cfg.Window)
	limit := max(r.limit, r.c.deliver.consumed.Load()+window)
	if r.wants || r.creditDue || limit-r.limit >= window/64 {
		return limit
	}
	return 0
}

// putAck writes the acknowledgement that ackRoom or makeAck has just made, and returns its size.
func (r *receiver) putAck(b []byte, room int) int {
	if room == 0 {
		return 0
	}
	a := &r.c.s.frame.ack
	if a.Limit > r.limit {
		r.limit, r.wants = a.Limit, false
	}
	r.pending, r.now, r.ackDue = 0, false, 0
	return a.Put(b)
}
