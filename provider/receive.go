package provider

import (
	"encoding/binary"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/provider/internal/target"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Delivering messages that the data plane leaves to the runtime: eager ones (onEager, onSync), those that the data
// plane has matched (Settle), and unexpected ones when their receive is posted (deliverUnexpected).

// targetOf is the target of a receive on the post ring, targetIn of one in matching.
func targetOf(entry *hot.RecvEntry) target.Target {
	return target.Target{Buf: entry.Buf, Len: entry.Len, Context: entry.Context, Flags: entry.Flags}
}

func targetIn(rv *match.Recv) target.Target {
	return target.Target{Buf: rv.Buf, Len: rv.Len, Context: rv.Context, Flags: rv.Flags}
}

// release frees the target's vector.
func (r *receiving) release(t target.Target) {
	if t.Flags&hot.RecvIOV != 0 {
		r.matching.Pool.Put(t.Buf, int(t.Len)*iovBytes)
	}
	if t.Entry != 0 {
		r.base.owner.Free(t.Entry)
	}
}

// arrived is a message at the moment of its arrival or delivery.
type arrived struct {
	ep      *leasedEP
	source  uint32 // identity
	number  uint8  // which of the source's interfaces
	src     hw.Source
	tag     uint64
	data    uint64
	length  uint64 // bytes of the whole message
	request uint64 // the sender's, for the acknowledgement
	flags   uint64 // msg* bits
}

// Bits of arrived.flags and match.Message.Flags; the latter has the source and
// the number of the endpoint above them.
const (
	msgTagged uint64 = hot.MessageTagged
	msgData   uint64 = hot.MessageData        // data is valid
	msgRTS    uint64 = dataplane.MessageRTS   // the payload is with the sender: Payload is the address of an rts
	msgSync   uint64 = dataplane.MessageSync  // the sender waits for an acknowledgement
	msgMatch  uint64 = dataplane.MessageMatch // until a receive has matched
)

// onEager returns the handler of the active messages that carry a complete
// message.
func (e *leasedEP) onEager(flags uint64) hw.Handler {
	return func(src hw.Source, header uint64, head, payload []byte) {
		s := e.senderOf(src)
		a := arrived{ep: e, source: s.ID, number: s.Number, src: src, tag: header,
			length: uint64(len(payload)), flags: flags}
		switch {
		case flags&msgData == 0:
		case len(head) == 8:
			a.data = binary.LittleEndian.Uint64(head)
		default:
			e.malformed(src, "message with %d bytes of CQ data", len(head))
			return
		}
		if !e.accept(&a, payload) && !e.rx.arrive(&a, payload) {
			e.ep.base.links.Transports().Postpone(src)
			return
		}
		e.ep.base.counts.Eager(len(payload))
	}
}

// accept has the data plane take in a complete message; false: it is for arrive to do.
func (e *leasedEP) accept(a *arrived, payload []byte) bool {
	r := e.rx
	if r.base.owner != nil {
		return false
	}
	addr := e.addrOf(a.source)
	if addr == fi.AddrNotAvail && e.ep.base.chosen.sourceErr {
		return false
	}
	d := hot.Delivery{
		ID: a.source, Number: uint32(a.number), Source: uint32(a.src), Flags: uint32(a.flags),
		Addr: hot.SenderAddr(uint64(addr)), Tag: a.tag, Data: a.data, Length: a.length,
		Payload: addressOfBytes(payload),
	}
	verdict := r.matching.Accept(e.ep.base.hot, &d)
	e.ep.base.bound.act(d.Todo)
	switch verdict {
	case dataplane.Refused:
		return false
	case dataplane.Settle:
		r.settle(r.matching.Engine(a.flags&msgTagged != 0), (*match.Recv)(pointerAt(d.Recv)), a, payload)
	case dataplane.Complete:
		e.ep.base.bound.rxCQ.Complete(entryOf(&d.Entry))
	case dataplane.Delivered, dataplane.Unexpected:
	}
	return true
}

// act does what the data plane left to do after completions (hot.Todo*).
func (e *bindings) act(todo uint32) {
	if todo&hot.TodoWakeCQ != 0 {
		e.rxCQ.Wake()
	}
	if todo&hot.TodoWakeCntr != 0 {
		e.rxCntr.Load().Wake()
	}
	if todo&hot.TodoWakeTxCQ != 0 {
		e.txCQ.Wake()
	}
	if todo&hot.TodoWakeTxCntr != 0 {
		e.txCntr.Load().Wake()
	}
}

// entryOf returns a completion as package cq takes it.
func entryOf(e *hot.CQE) cq.Entry {
	return cq.Entry{
		Context: e.Context, Flags: e.Flags, Len: e.Len, Buf: e.Buf, Data: e.Data, Tag: e.Tag, Src: fi.Addr(e.Src),
	}
}

// Settle gives the message to an endpoint that the data plane describes to the receive that it has matched there.
func (r *leasedRx) Settle(e *Endpoint, d *hot.Delivery) { e.leased.Of(r).settle(d) }

func (e *leasedEP) settle(d *hot.Delivery) {
	a := arrived{
		ep: e, source: d.ID, src: hw.Source(d.Source), tag: d.Tag, data: d.Data, length: d.Length,
		flags: uint64(d.Flags), request: d.Request,
	}
	if s, ok := e.senders.Known(a.src); ok {
		a.number = s.Number
	}
	e.ep.base.counts.Eager(int(a.length))
	eng := e.rx.matching.Engine(a.flags&msgTagged != 0)
	e.rx.settle(eng, (*match.Recv)(pointerAt(d.Recv)), &a, bytesAt(d.Payload, d.Length))
}

// Deliver completes a receive on the endpoint's queue, whose ring is full.
func (e *Endpoint) Deliver(d *hot.Delivery) { e.base.bound.rxCQ.Complete(entryOf(&d.Entry)) }

func (e *leasedEP) onSync(src hw.Source, header uint64, head, payload []byte) {
	var s wire.Sync
	if !s.Parse(head) {
		e.malformed(src, "tracked message with a head of %d bytes", len(head))
		return
	}
	from := e.senderOf(src)
	e.fillBack(src) // the data plane acknowledges the next one
	a := arrived{ep: e, source: from.ID, number: from.Number, src: src, tag: header, data: s.Data,
		request: s.Request,
		length:  uint64(len(payload)), flags: msgSync}
	if s.Flags&wire.FlagTagged != 0 {
		a.flags |= msgTagged
	}
	if s.Flags&wire.FlagData != 0 {
		a.flags |= msgData
	}
	if s.Flags&wire.FlagMatch != 0 {
		a.flags |= msgMatch
	}
	if !e.rx.arrive(&a, payload) {
		e.ep.base.links.Transports().Postpone(src)
		return
	}
	e.ep.base.counts.Eager(len(payload))
}

// arrive matches a complete message, or keeps it. False: there is no memory to keep it, and nothing has happened.
func (r *leasedRx) arrive(a *arrived, payload []byte) bool {
	if r.base.owner != nil {
		return r.offerPeer(a, payload, nil)
	}
	eng := r.matching.Engine(a.flags&msgTagged != 0)
	rv := r.find(eng, a.source, a.tag)
	if rv == nil {
		return r.keep(eng, a, payload)
	}
	r.settle(eng, rv, a, payload)
	return true
}

// settle gives a complete message to the receive that matched.
func (r *receiving) settle(eng *match.Engine, rv *match.Recv, a *arrived, payload []byte) {
	switch {
	case rv.Kept():
		r.deliverMulti(eng, rv, a, payload)
	default:
		t := targetIn(rv)
		eng.Release(rv)
		r.deliver(t, a, payload)
	}
}

// untilHere reports whether the sender waits until the message is here, and no longer.
func (a *arrived) untilHere() bool { return a.flags&(msgSync|msgMatch) == msgSync }

// keep keeps a complete message as unexpected. A sender that waits for that gets an acknowledgement. A datagram for
// which there is no room is dropped. False: there is no memory, and nothing has happened.
func (r *receiving) keep(eng *match.Engine, a *arrived, payload []byte) bool {
	if a.ep.ep.base.chosen.lossy && (r.matching.UnexpectedBytes+len(payload) > r.matching.UnexpectedMax ||
		r.matching.Memory+dataplane.KeptMemory(0, len(payload)) > r.matching.MemoryMax) {
		log.Debugf(log.EPData, "datagram of %d bytes dropped: %d are kept", len(payload), r.matching.UnexpectedBytes)
		return true
	}
	kept := *a
	if a.untilHere() {
		kept.flags &^= msgSync
	}
	if !r.keepEager(eng, &kept, payload) {
		return a.ep.ep.base.chosen.lossy
	}
	if a.untilHere() {
		r.sendAck(a, fi.Success)
	}
	return true
}

// keepEager keeps a message that no receive wants yet. False: there is no memory.
func (r *receiving) keepEager(eng *match.Engine, a *arrived, payload []byte) bool {
	addr := uint64(0)
	if len(payload) > dataplane.InWord {
		var err error
		if addr, err = r.matching.Pool.Get(len(payload)); err != nil {
			return r.noMemory(err)
		}
	}
	m := eng.Hold(a.source, a.tag)
	if m == nil {
		if addr != 0 {
			r.matching.Pool.Put(addr, len(payload))
		}
		return r.noMemory(eng.Err())
	}
	m.Len, m.Data, m.Payload, m.Request = a.length, a.data, addr, a.request
	m.Flags = keptFlags(a)
	copy(keptPayload(m), payload)
	a.ep.ep.base.counts.Unexpected(len(payload))
	r.hold(len(payload), dataplane.KeptMemory(0, len(payload)))
	return true
}

// memoryLogs is how often the log says that messages wait at their transports, because the process gets no memory to
// keep them as unexpected. They wait until it does, or their receives are posted.
const memoryLogs = 10 * time.Second

// noMemory logs why a message is not kept, unless that was said a while ago, and returns false.
func (r *receiving) noMemory(err error) bool {
	if now := time.Now(); now.Sub(r.memoryLogged) >= memoryLogs {
		r.memoryLogged = now
		log.Warnf(log.EPData, "messages wait at their transports: no memory to keep them as unexpected: %v", err)
	}
	return false
}

// unexpectedAs returns an unexpected message as it was when it arrived.
func (r *receiving) unexpectedAs(m *match.Message) arrived {
	return arrived{
		ep: r.byNumber(keptEndpoint(m)), source: m.Source(), tag: m.Tag(), data: m.Data,
		length: m.Len, request: m.Request, flags: m.Flags & (1<<dataplane.UnexpectedSourceShift - 1),
		src: keptSource(m), number: keptSender(m).Number,
	}
}

// keptEndpoint and keptSource return where an unexpected message came from: an endpoint's number, and its source.
func keptEndpoint(m *match.Message) uint32 {
	return uint32(m.Flags >> dataplane.UnexpectedEndpointShift)
}

func keptSource(m *match.Message) hw.Source {
	return hw.Source(m.Flags >> dataplane.UnexpectedSourceShift & 0xffffff)
}

// keptSender returns the sender of an unexpected message.
func keptSender(m *match.Message) sender {
	return sender{ID: m.Source(), Number: uint8(m.Flags >> dataplane.UnexpectedNumberShift)}
}

// sender returns the message's sender.
func (a *arrived) sender() sender { return sender{ID: a.source, Number: a.number} }

// keptFlags is what match.Message.Flags keeps of a message.
func keptFlags(a *arrived) uint64 {
	return a.flags | uint64(a.src)<<dataplane.UnexpectedSourceShift |
		uint64(a.number)<<dataplane.UnexpectedNumberShift |
		uint64(a.ep.ep.base.number)<<dataplane.UnexpectedEndpointShift
}

// byNumber returns an endpoint of this context; nil if it was closed.
func (r *receiving) byNumber(n uint32) *leasedEP {
	for _, e := range r.eps {
		if e.ep.base.number == n {
			return e
		}
	}
	return nil
}

// deliverUnexpected gives an unexpected message to a receive and releases it.
func (r *leasedRx) deliverUnexpected(eng *match.Engine, t target.Target, m *match.Message) {
	a := r.unexpectedAs(m)
	if a.flags&msgRTS != 0 {
		rts := *rtsAt(m.Payload)
		r.releaseUnexpected(eng, m)
		r.startRendezvous(t, nil, &a, &rts)
		return
	}
	r.deliver(t, &a, keptPayload(m))
	r.releaseUnexpected(eng, m)
}

// releaseUnexpected frees a message that is out of the queue, and its payload.
func (r *receiving) releaseUnexpected(eng *match.Engine, m *match.Message) {
	if m.Flags&msgRTS != 0 {
		r.matching.Pool.Put(m.Payload, rtsSize)
		r.unhold(0, dataplane.KeptMemory(dataplane.MessageRTS, 0))
	} else {
		if m.Len > dataplane.InWord {
			r.matching.Pool.Put(m.Payload, int(m.Len))
		}
		r.unhold(int(m.Len), dataplane.KeptMemory(0, int(m.Len)))
	}
	eng.ReleaseMessage(m)
}

// deliver copies a complete message to a receive's target and completes it.
func (r *receiving) deliver(t target.Target, a *arrived, payload []byte) {
	status := fi.Success
	if n, err := t.Scatter(payload); err == nil {
		a.ep.completeRecv(t.Context, t.Flags, t.Named(), n, a)
	} else {
		status = a.ep.storeFailed(&t, a, err)
	}
	r.release(t)
	if a.flags&msgSync != 0 {
		r.sendAck(a, status)
	}
}

// sendAck sends a message's sender the ACK, with the outcome.
func (r *receiving) sendAck(a *arrived, status fi.Errno) {
	r.answer(a.ep, a.src, a.sender(), wire.AMAck, a.request, wire.PutAck(r.head[:], status))
}

// SendAck sends a source of an endpoint the ACK of its request, whose message the data plane has taken in, or keeps the
// ACK until there is room.
func (r *leasedRx) SendAck(e *Endpoint, source uint32, request uint64) {
	e.leased.Of(r).sendAck(source, request)
}

func (e *leasedEP) sendAck(source uint32, request uint64) {
	s := e.senderOf(hw.Source(source))
	e.rx.sendAck(&arrived{ep: e, source: s.ID, number: s.Number, src: hw.Source(source), request: request}, fi.Success)
	e.fillBack(hw.Source(source)) // the data plane sends the next one
	e.rx.sendSoon()
}
