package matched

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// What threads of C do without the Go runtime (package direct): the data plane calls the functions of this file, and
// has the device's port (hot.MatchPort) called in between. They do the common case, of the same tables and by the same
// pieces as Send, Receive and event, and leave the rest to those as it was.

// Flags of posts that need no more than to be kept.
const (
	directSend    = sendFlags &^ (fi.Fence | fi.RemoteCQData)
	directReceive = fi.Completion | fi.More
)

// DirectSend enters a message of one piece of the process's own memory, and returns hot.PostMatch with what the device
// is to be given, hot.PostGo or hot.PostAgain; then nothing has happened.
func (e *Endpoint) DirectSend(p *hot.Post) uintptr {
	inject := p.Kind&hot.PostInject != 0
	tagged := p.Kind&hot.PostTagged != 0
	if p.Flags&^directSend != 0 || p.Buf == 0 && p.Len != 0 || p.Len > directMax || e.o.Generation == nil ||
		p.Len > uint64(e.attr.MaxInject) && (inject || p.Flags&fi.Inject != 0) ||
		tagged && p.Header&^e.attr.TagMask != 0 {
		return hot.PostGo
	}
	to, known := e.addresses.find(p.Dest, e.o.Generation.Load())
	if !known {
		return hot.PostGo
	}
	m := &p.Match
	m.Peer, m.Tag, m.Data, m.Length = to, p.Header, p.Data, uint32(p.Len)
	m.Kind = p.Kind & (hot.PostTagged | hot.PostData) // as hot.MatchTagged and hot.MatchData
	if p.Flags&fi.MatchComplete != 0 {
		m.Kind |= hot.MatchAwaited
	}
	o := operation{kind: kindSend, to: hw.MatchAddress(to), tagged: tagged, context: p.Context, flags: p.Flags,
		inject: inject, len: p.Len}
	return e.enter(p, &o)
}

// directMax is more than any message that goes at once, in bytes.
const directMax = 1 << 20

// DirectReceive is DirectSend for a receive.
func (e *Endpoint) DirectReceive(p *hot.Post) uintptr {
	tagged := p.Kind&hot.PostTagged != 0
	if p.Flags&^uint64(directReceive) != 0 || p.Buf == 0 && p.Len != 0 || p.Len > e.attr.MaxMessage ||
		e.o.Generation == nil || tagged && p.Header&^p.Data&^e.attr.TagMask != 0 {
		return hot.PostGo
	}
	m := &p.Match
	m.Kind = hot.MatchReceive | p.Kind&hot.PostTagged
	if p.Dest == uint64(fi.AddrUnspec) || !e.directed(tagged) {
		m.Kind |= hot.MatchAny
	} else {
		from, known := e.addresses.find(p.Dest, e.o.Generation.Load())
		if !known {
			return hot.PostGo
		}
		m.Peer = from
	}
	m.Tag, m.Data, m.Length = p.Header&e.attr.TagMask, p.Data&e.attr.TagMask, uint32(p.Len)
	o := operation{kind: kindReceive, tagged: tagged, context: p.Context, flags: p.Flags, buf: uint64(p.Buf),
		len: p.Len, tag: p.Header}
	return e.enter(p, &o)
}

// enter gives an operation its memory and a place in the table.
func (e *Endpoint) enter(p *hot.Post, o *operation) uintptr {
	m := &p.Match
	m.Buf, m.At, m.Space = 0, 0, 0
	inline, copied := false, false
	switch {
	case p.Len == 0:
	case o.kind == kindSend && p.Len <= uint64(e.attr.MaxInject):
		inline = true
	case o.kind == kindSend && p.Len <= copyBytes && e.copies.placed.Valid:
		copied = true
	default:
		access := hw.Access(0)
		if o.kind == kindReceive {
			access = hw.LocalWrite
		}
		var at hw.Placed
		if o.memory, at = e.o.Cache.Find(uint64(p.Buf), p.Len, access); o.memory == 0 {
			return hot.PostGo
		}
		m.At, m.Space = at.At, at.Space
	}
	if inline || o.kind == kindReceive {
		m.Buf = p.Buf
	}
	if !e.ops.mu.Try() {
		return e.unregister(o, hot.PostGo)
	}
	if copied {
		o.copied = e.copies.take(p.Len)
	}
	context, ok := uint64(0), !copied || o.copied != 0
	if ok {
		context, ok = e.ops.enter(o)
	}
	if !ok {
		e.copies.put(o.copied)
	}
	e.ops.mu.Give()
	if !ok {
		return e.unregister(o, hot.PostGo)
	}
	if copied {
		m.At = e.copies.placed.At + uint64(e.copies.fill(o.copied, uint64(p.Buf), p.Len))
		m.Space = e.copies.placed.Space
	}
	m.Context = context
	if p.Flags&fi.More != 0 {
		m.Kind |= hot.MatchMore
		e.rings.Store(true)
	}
	return hot.PostMatch
}

// unregister gives the registration of an operation that has no place back, and returns code.
func (e *Endpoint) unregister(o *operation, code uintptr) uintptr {
	for o.memory != 0 && !e.o.Cache.Undo(o.memory) {
	}
	return code
}

// DirectRefused takes an operation back that the device has not taken. It returns hot.PostAgain or hot.PostGo, as the
// device says (hot.Post.Sent).
func (e *Endpoint) DirectRefused(p *hot.Post) uintptr {
	for !e.ops.mu.Try() {
	}
	var memory uint32
	if o := e.ops.at(p.Match.Context); o != nil {
		memory = o.memory
		e.copies.put(o.copied)
		e.ops.end(o, p.Match.Context)
	}
	e.ops.mu.Give()
	code := uintptr(hot.PostGo)
	if p.Sent == hot.PathFull {
		code = hot.PostAgain
	}
	return e.unregister(&operation{memory: memory}, code)
}

// Completion is what has become of an operation.
type Completion struct {
	Entry    hot.CQE // but for Seq
	Flags    uint64  // with which it was posted
	Bytes    uint64
	Receive  bool
	Inject   bool // it writes no completion
	Unwanted bool // it has ended before: there is nothing to report
}

// DirectEnd takes in an event of the device's. False: the runtime is to do that (MatchedEvent), and nothing has
// happened. Lease.
func (e *Endpoint) DirectEnd(ev *hot.MatchEvent, c *Completion) bool {
	source := uint64(fi.AddrNotAvail)
	if ev.Flags&hot.MatchReceive != 0 && e.o.Source != nil {
		known := false
		if source, known = e.senders.find(ev.From, e.o.Generation.Load()); !known {
			return false
		}
	}
	if !e.ops.mu.Try() {
		return false
	}
	o := e.ops.at(ev.Context)
	c.Unwanted = o == nil
	// The domain counts deferred work.
	ok := c.Unwanted || o.flags&workFlag == 0 && (o.memory == 0 || e.o.Cache.Drop(o.memory))
	if ok && !c.Unwanted {
		c.fill(o, ev)
		c.Entry.Src = source
		e.copies.put(o.copied)
		e.ops.end(o, ev.Context)
	}
	e.ops.mu.Give()
	return ok
}

// fill stores what there is to report of an operation.
func (c *Completion) fill(o *operation, ev *hot.MatchEvent) {
	n := &c.Entry
	n.Context, n.Flags, n.Len, n.Buf, n.Data, n.Tag = o.context, flagsOf(o), 0, 0, 0, 0
	c.Flags, c.Bytes, c.Receive, c.Inject = o.flags, o.len, o.kind.receives(), o.inject
	if !c.Receive {
		return
	}
	n.Len, n.Buf, n.Tag, c.Bytes = ev.Length, o.buf, ev.Tag, ev.Length
	if ev.Flags&hot.MatchData != 0 {
		n.Flags |= fi.RemoteCQData
		n.Data = ev.Data
	}
}

// MatchedEvent takes in an event that DirectEnd has left. Lease.
func (e *Endpoint) MatchedEvent(ev *hot.MatchEvent) {
	n := hw.MatchEvent{Kind: hw.MatchSent, Context: ev.Context, Last: true}
	if ev.Flags&hot.MatchReceive != 0 {
		n.Kind, n.From, n.Tag = hw.MatchReceived, hw.MatchAddress(ev.From), ev.Tag
		n.Tagged = ev.Flags&hot.MatchTagged != 0
		n.Data, n.HasData, n.Length, n.Wanted = ev.Data, ev.Flags&hot.MatchData != 0, ev.Length, ev.Length
	}
	e.event(&n)
}
