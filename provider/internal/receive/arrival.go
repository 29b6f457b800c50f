package receive

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/target"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Handlers are those of messages that come with their payload.
func (e *Endpoint) Handlers() map[hw.AMID]hw.Handler {
	return map[hw.AMID]hw.Handler{
		wire.AMMsg:     e.onEager(0),
		wire.AMMsgData: e.onEager(msgData),
		wire.AMTag:     e.onEager(msgTagged),
		wire.AMTagData: e.onEager(msgTagged | msgData),
		wire.AMSync:    e.onSync,
	}
}

// onEager returns the handler of the active messages that carry a complete
// message.
func (e *Endpoint) onEager(flags uint64) hw.Handler {
	return func(src hw.Source, header uint64, head, payload []byte) {
		a := message{at: e, from: e.host.Sender(src), src: src, tag: header, length: uint64(len(payload)), flags: flags}
		switch {
		case flags&msgData == 0:
		case len(head) == 8:
			a.data = binary.LittleEndian.Uint64(head)
		default:
			e.host.Malformed(src, "message with %d bytes of CQ data", len(head))
			return
		}
		if !e.accept(&a, payload) && !e.rx.arrive(&a, payload) {
			e.host.Postpone(src)
			return
		}
		e.counts.Eager(len(payload))
	}
}

// accept has the data plane take in a complete message; false: it is for arrive to do.
func (e *Endpoint) accept(a *message, payload []byte) bool {
	c := e.rx
	if c.owner != nil {
		return false
	}
	addr := e.host.AddrOf(a.from.ID)
	if addr == fi.AddrNotAvail && e.sourceErr {
		return false
	}
	d := hot.Delivery{
		ID: a.from.ID, Number: uint32(a.from.Number), Source: uint32(a.src), Flags: uint32(a.flags),
		Addr: hot.SenderAddr(uint64(addr)), Tag: a.tag, Data: a.data, Length: a.length,
		Payload: mem.Address(payload),
	}
	verdict := c.Accept(e.hot, &d)
	e.host.Act(d.Todo)
	switch verdict {
	case dataplane.Refused:
		return false
	case dataplane.Settle:
		c.settle(c.Engine(a.flags&msgTagged != 0), recvAt(d.Recv), a, payload)
	case dataplane.Complete:
		e.host.Put(EntryOf(&d.Entry))
	case dataplane.Delivered, dataplane.Unexpected:
	}
	return true
}

// Settle gives a message that the data plane describes to the receive that it has matched there.
func (e *Endpoint) Settle(d *hot.Delivery) {
	a := message{
		at: e, from: links.Sender{ID: d.ID}, src: hw.Source(d.Source), tag: d.Tag, data: d.Data, length: d.Length,
		flags: uint64(d.Flags), request: d.Request,
	}
	if s, ok := e.host.Known(a.src); ok {
		a.from.Number = s.Number
	}
	e.counts.Eager(int(a.length))
	e.rx.settle(e.rx.Engine(a.flags&msgTagged != 0), recvAt(d.Recv), &a, mem.Bytes(d.Payload, d.Length))
}

// onSync takes in a complete message that the sender waits for.
func (e *Endpoint) onSync(src hw.Source, header uint64, head, payload []byte) {
	var s wire.Sync
	if !s.Parse(head) {
		e.host.Malformed(src, "tracked message with a head of %d bytes", len(head))
		return
	}
	from := e.host.Sender(src)
	e.host.FillBack(src) // the data plane acknowledges the next one
	a := message{
		at: e, from: from, src: src, tag: header, data: s.Data, request: s.Request,
		length: uint64(len(payload)), flags: flagsOf(msgSync, s.Flags),
	}
	if s.Flags&wire.FlagMatch != 0 {
		a.flags |= msgMatch
	}
	if !e.rx.arrive(&a, payload) {
		e.host.Postpone(src)
		return
	}
	e.counts.Eager(len(payload))
}

// Acknowledge sends a source the ACK of its request, whose message the data plane has taken in.
func (e *Endpoint) Acknowledge(src hw.Source, request uint64) {
	a := message{at: e, from: e.host.Sender(src), src: src, request: request}
	a.ack(fi.Success)
	e.host.FillBack(src) // the data plane sends the next one
}

// arrive matches a complete message, or keeps it. False: there is no memory to keep it, and nothing has happened.
func (c *Context) arrive(a *message, payload []byte) bool {
	if c.owner != nil {
		return c.offer(a, payload, nil)
	}
	eng := c.Engine(a.flags&msgTagged != 0)
	rv := c.find(eng, a.from.ID, a.tag)
	if rv == nil {
		return c.keep(eng, a, payload)
	}
	c.settle(eng, rv, a, payload)
	return true
}

// find takes the receive for a message out of matching, nil if there is none.
// Those on the post ring are younger than those in matching. No more of them are
// moved into matching than it takes to find one, because a receive at the head of
// the ring costs the data plane least (Receiver.Accept). A search or cancel there
// comes after the message and is left to the next progress: a search takes in
// arrivals, and the caller is a handler of one.
func (c *Context) find(eng *match.Engine, source uint32, tag uint64) *match.Recv {
	rv := eng.Arrive(source, tag)
	for rv == nil && c.takePost(dataplane.UrgentRecv) {
		rv = eng.Arrive(source, tag)
	}
	return rv
}

// settle gives a complete message to the receive that matched.
func (c *Context) settle(eng *match.Engine, rv *match.Recv, a *message, payload []byte) {
	switch {
	case rv.Kept():
		c.deliverMulti(eng, rv, a, payload)
	default:
		t := targetIn(rv)
		eng.Release(rv)
		c.deliver(t, a, payload)
	}
}

// keep keeps a complete message as unexpected. A sender that waits for that gets an acknowledgement. A datagram for
// which there is no room is dropped. False: there is no memory, and nothing has happened.
func (c *Context) keep(eng *match.Engine, a *message, payload []byte) bool {
	if a.at.lossy && (c.UnexpectedBytes+len(payload) > c.UnexpectedMax ||
		c.Memory+dataplane.KeptMemory(0, len(payload)) > c.MemoryMax) {
		log.Debugf(log.EPData, "datagram of %d bytes dropped: %d are kept", len(payload), c.UnexpectedBytes)
		return true
	}
	kept := *a
	if a.untilHere() {
		kept.flags &^= msgSync
	}
	if !c.keepEager(eng, &kept, payload) {
		return a.at.lossy
	}
	if a.untilHere() {
		a.ack(fi.Success)
	}
	return true
}

// keepEager keeps a message that no receive wants yet. False: there is no memory.
func (c *Context) keepEager(eng *match.Engine, a *message, payload []byte) bool {
	addr := uint64(0)
	if len(payload) > dataplane.InWord {
		var err error
		if addr, err = c.Pool.Get(len(payload)); err != nil {
			return c.noMemory(err)
		}
	}
	m := eng.Hold(a.from.ID, a.tag)
	if m == nil {
		if addr != 0 {
			c.Pool.Put(addr, len(payload))
		}
		return c.noMemory(eng.Err())
	}
	m.Len, m.Data, m.Payload, m.Request = a.length, a.data, addr, a.request
	m.Flags = keptFlags(a)
	copy(keptPayload(m), payload)
	a.at.counts.Unexpected(len(payload))
	c.Hold(len(payload), dataplane.KeptMemory(0, len(payload)))
	return true
}

// deliverUnexpected gives an unexpected message to a receive and releases it.
func (c *Context) deliverUnexpected(eng *match.Engine, t target.Target, m *match.Message) {
	a := c.unexpectedAs(m)
	if a.flags&msgRTS != 0 {
		c.rts = *rtsAt(m.Payload)
		c.releaseUnexpected(eng, m)
		c.startRendezvous(t, nil, &a, &c.rts)
		return
	}
	c.deliver(t, &a, keptPayload(m))
	c.releaseUnexpected(eng, m)
}

// releaseUnexpected frees a message that is out of the queue, and its payload.
func (c *Context) releaseUnexpected(eng *match.Engine, m *match.Message) {
	if m.Flags&msgRTS != 0 {
		c.Pool.Put(m.Payload, rtsSize)
		c.Unhold(0, dataplane.KeptMemory(dataplane.MessageRTS, 0))
	} else {
		if m.Len > dataplane.InWord {
			c.Pool.Put(m.Payload, int(m.Len))
		}
		c.Unhold(int(m.Len), dataplane.KeptMemory(0, int(m.Len)))
	}
	eng.ReleaseMessage(m)
}

// deliver copies a complete message to a receive's target and completes it.
func (c *Context) deliver(t target.Target, a *message, payload []byte) {
	status := fi.Success
	if n, err := t.Scatter(payload); err == nil {
		a.complete(t.Context, t.Flags, t.Named(), n)
	} else {
		status = a.storeFailed(&t, err)
	}
	c.release(t)
	if a.flags&msgSync != 0 {
		a.ack(status)
	}
}
