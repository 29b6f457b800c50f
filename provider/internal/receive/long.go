package receive

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
	"github.com/weft-fabric/weft/provider/internal/target"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Long messages are package rendezvous's. Here are their matching, and their ends.

// Arrived matches the message of an RTS and begins to read it, or keeps the RTS as unexpected.
func (e *Endpoint) Arrived(src hw.Source, header uint64, m *wire.RTS) {
	from := e.host.Sender(src)
	e.host.FillBack(src) // the data plane acknowledges the next one
	a := message{
		at: e, from: from, src: src, tag: header, data: m.Data, length: m.Length, request: m.Request,
		flags: flagsOf(msgRTS, m.Flags),
	}
	c := e.rx
	if c.owner != nil {
		if !c.offer(&a, nil, m) {
			e.host.Postpone(src)
		}
		return
	}
	eng := c.Engine(a.flags&msgTagged != 0)
	switch rv := c.find(eng, a.from.ID, a.tag); {
	case rv == nil:
		if !c.holdRTS(eng, &a, m) {
			e.host.Postpone(src)
		}
	case rv.Kept():
		c.rendezvousMulti(eng, rv, &a, m)
	default:
		t := targetIn(rv)
		eng.Release(rv)
		c.startRendezvous(t, nil, &a, m)
	}
}

// holdRTS keeps an RTS that matches no receive. False: there is no memory, and nothing has happened.
func (c *Context) holdRTS(eng *match.Engine, a *message, rts *wire.RTS) bool {
	addr, err := c.Pool.Get(rtsSize)
	if err != nil {
		return c.noMemory(err)
	}
	*rtsAt(addr) = *rts
	m := eng.Hold(a.from.ID, a.tag)
	if m == nil {
		c.Pool.Put(addr, rtsSize)
		return c.noMemory(eng.Err())
	}
	m.Len, m.Data, m.Payload, m.Request = a.length, a.data, addr, a.request
	m.Flags = keptFlags(a)
	a.at.counts.Unexpected(0)
	c.Hold(0, dataplane.KeptMemory(dataplane.MessageRTS, 0))
	return true
}

// startRendezvous begins to read a matched message into t. multi is the multi-receive buffer that t is part of, or nil.
func (c *Context) startRendezvous(t target.Target, multi *match.Recv, a *message, rts *wire.RTS) {
	m := rendezvous.Message{
		Target: t, Src: a.src, Sender: a.from.ID, Number: a.from.Number, Tag: a.tag, Data: a.data, Flags: a.flags,
		Length: rts.Length, Request: a.request, Multi: addressOf(multi),
	}
	if !a.at.long.Start(m, rts) {
		a.ack(fi.ENOMEM)
		t.Flags |= c.endPiece(multi, a.flags)
		c.end(t, a.tag, fi.ENOMEM)
	}
}

// endPiece ends a message's part of a multi-receive buffer, nil: it has none. It returns what the last completion of
// the buffer says (Retire). flags are those of the message.
func (c *Context) endPiece(multi *match.Recv, flags uint64) uint64 {
	if multi == nil {
		return 0
	}
	multi.User[dataplane.MultiPending]--
	return c.Retire(c.Engine(flags&msgTagged != 0), multi)
}

// arrivedAs is a message as it was when it arrived.
func (e *Endpoint) arrivedAs(m *rendezvous.Message) message {
	return message{
		at: e, from: links.Sender{ID: m.Sender, Number: m.Number}, src: m.Src, tag: m.Tag, data: m.Data,
		length: m.Length, request: m.Request, flags: m.Flags,
	}
}

// Complete completes a message on both sides.
func (e *Endpoint) Complete(m *rendezvous.Message, done uint64, status fi.Errno) {
	a, t := e.arrivedAs(m), &m.Target
	flags := t.Flags | e.rx.endPiece(recvAt(m.Multi), m.Flags)
	if status != fi.Success {
		a.failed(t, flags, done, status)
	} else {
		a.complete(t.Context, flags, t.Named(), done)
	}
	// On another host a connection may be lost and the sender not.
	if status != fi.ECONNRESET || a.src > links.SourceMask && a.lives() {
		a.ack(status)
	}
	e.rx.release(*t)
}

// lives reports whether the message's sender is still behind its source.
func (a *message) lives() bool {
	s, ok := a.at.host.Known(a.src)
	return ok && s == a.from
}

// Abandon ends the receive of a message whose endpoint has left the receive context: it was posted to the context, and
// fails at an endpoint that stays.
func (e *Endpoint) Abandon(m *rendezvous.Message) {
	t := m.Target
	t.Flags |= e.rx.endPiece(recvAt(m.Multi), m.Flags)
	e.rx.end(t, m.Tag, fi.ECANCELED)
}
