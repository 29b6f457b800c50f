package matched

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// What threads of C do without the Go runtime (package direct): the data plane calls the functions of this file, and
// has the device's transport (hot.MatchTransport) called in between. They do the common case, of the same tables and by
// the same pieces as Send, Receive and event, and leave the rest to those as it was.

// DirectSend enters a message of one piece of the process's own memory, and returns hot.PostMatch with what the device
// is to be given, hot.PostGo or hot.PostAgain; then nothing has happened.
func (e *Endpoint) DirectSend(p *hot.Post) uintptr {
	to, known := e.direct(p, &sendRules)
	if !known || p.Len > directMax {
		return hot.PostGo
	}
	m := &p.Match
	m.Peer, m.Tag, m.Data, m.Length = uint64(to), p.Header, p.Data, uint32(p.Len)
	m.Kind = p.Kind & (hot.PostTagged | hot.PostData) // as hot.MatchTagged and hot.MatchData
	if p.Flags&fi.MatchComplete != 0 {
		m.Kind |= hot.MatchAwaited
	}
	o := sending(p, to)
	return e.enter(p, &o)
}

// direct judges an operation that goes to a peer, and finds that. False: it is not one that is posted so.
func (e *Endpoint) direct(p *hot.Post, r *rules) (to hw.MatchAddress, known bool) {
	if e.o.Generation == nil || p.Flags&fi.Fence&^e.o.Caps != 0 || e.faultOf(p, r, r.direct, 0) != faultNone {
		return 0, false
	}
	at, known := e.addresses.find(p.Dest, e.o.Generation.Load())
	return hw.MatchAddress(at), known
}

// directMax is more than any message that goes at once, in bytes.
const directMax = 1 << 20

// DirectReceive is DirectSend for a receive.
func (e *Endpoint) DirectReceive(p *hot.Post) uintptr {
	tagged := p.Kind&hot.PostTagged != 0
	if e.faultOf(p, &receiveRules, receiveRules.direct, p.Data) != faultNone || e.o.Generation == nil {
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
	o := receiving(p)
	return e.enter(p, &o)
}

// DirectTransfer is DirectSend for a read or write.
func (e *Endpoint) DirectTransfer(p *hot.Post) uintptr {
	read := p.Kind&hot.PostRead != 0
	to, known := e.direct(p, transferRules(read))
	if !known || e.memory == nil {
		return hot.PostGo
	}
	m := &p.Match
	m.Kind = hot.MatchWrite
	if read {
		m.Kind = hot.MatchRead
	}
	if p.Kind&hot.PostData != 0 {
		m.Kind |= hot.MatchData
		m.Immediate = p.Data
	}
	e.access(p, to, orderedWrites)
	m.Length = uint32(p.Len)
	o := transferring(p, to)
	return e.enter(p, &o)
}

// DirectAtomic is DirectSend for an atomic operation on one element. p is as it was afterwards.
func (e *Endpoint) DirectAtomic(p *hot.Post) uintptr {
	size := uint64(fi.Datatype(p.Datatype).Size())
	compares, fetches := p.Atomic == hot.AtomicCompare, p.Atomic != hot.AtomicPlain
	if p.Len != 1 || size-1 >= elementMax || e.atomics == nil ||
		p.Op>>hot.MatchTypeShift != 0 || p.Datatype>>hot.MatchTypeShift != 0 ||
		compares != (fi.Op(p.Op) >= fi.OpCSwap) || compares && p.Compare == 0 || fetches && p.Result == 0 ||
		p.Buf == 0 && fi.Op(p.Op) != fi.OpRead {
		return hot.PostGo
	}
	p.Len = 0 // that of elements is none of the lengths that operations are judged by
	to, known := e.direct(p, atomicRulesOf(fetches))
	code := uintptr(hot.PostGo)
	if known {
		m := &p.Match
		m.Kind, m.Compare = hot.MatchAtomic, 0
		if fetches {
			m.Kind |= hot.MatchRead
		}
		if compares {
			m.Compare = p.Compare
		}
		e.access(p, to, orderedAtomics)
		m.Length, m.Op = uint32(size), p.Op|p.Datatype<<hot.MatchTypeShift
		p.Len = size
		o := performing(p, to)
		code = e.enter(p, &o)
	}
	p.Len = 1
	return code
}

// access stores in p.Match which region of a peer's an operation is on, and how. order has it keep that of writes.
func (e *Endpoint) access(p *hot.Post, to hw.MatchAddress, order uint64) {
	m := &p.Match
	m.Peer, m.Tag, m.Data = uint64(to), p.Key, p.Header
	if e.o.Order&order != 0 {
		m.Kind |= hot.MatchOrdered
	}
	if e.reportsToOwner() {
		m.Kind |= hot.MatchEvents
	}
	if p.Flags&(fi.DeliveryComplete|fi.MatchComplete) != 0 {
		m.Kind |= hot.MatchDelivered
	}
}

// enter gives an operation its memory and a place in the table. One with fi.Fence has none as long as what was posted
// before to its peer is under way. With hot.PostMatch the thread may be inside the endpoint's gate.
func (e *Endpoint) enter(p *hot.Post, o *operation) uintptr {
	if !e.o.Gate.Enter() {
		return e.place(p, o, false)
	}
	code := e.place(p, o, true)
	if code != hot.PostMatch {
		e.o.Gate.Leave()
	}
	return code
}

// place is enter of a thread that is alone, or has the locks to take.
func (e *Endpoint) place(p *hot.Post, o *operation, alone bool) uintptr {
	m := &p.Match
	m.Buf, m.At, m.Space, m.Context = 0, 0, 0, contextNone
	p.Request, p.Sent = 0, hot.PathGo
	way := e.way(o.kind, p.Len)
	copied := way == wayCopied
	switch {
	case copied && !e.copies.placed.Valid:
		return hot.PostGo
	case way == wayMapped:
		var at hw.Placed
		if o.memory, at = e.o.Cache.Find(uint64(p.Buf), p.Len, o.kind.access()); o.memory == 0 {
			return hot.PostGo
		}
		m.At, m.Space = at.At, at.Space
	}
	if way == wayInline || o.kind == kindReceive {
		m.Buf = p.Buf
	}
	if o.flags&fi.Fence != 0 {
		if e.ops.underway(o.to) {
			return e.unregister(p, o.memory, hot.PostAgain)
		}
		if e.fences() {
			return e.unregister(p, o.memory, hot.PostGo) // the device is asked
		}
	}
	if e.placeless(o) {
		m.Kind |= hot.MatchShared
		m.Context = o.sharedContext()
		e.share(alone)
		e.placeBell(p, alone)
		return hot.PostMatch
	}
	at, ok := e.ops.claim(p.Thread, copied)
	if !ok {
		return e.unregister(p, o.memory, hot.PostGo)
	}
	o.copied = uint16(at.buffer)
	if copied {
		m.At = e.copies.placed.At + uint64(e.copies.fill(o.copied, uint64(p.Buf), p.Len))
		m.Space = e.copies.placed.Space
	}
	m.Context = e.ops.enter(at, o)
	e.placeBell(p, alone)
	return hot.PostMatch
}

// placeBell has a post with fi.More leave the doorbell to the next one, and notes that.
func (e *Endpoint) placeBell(p *hot.Post, alone bool) {
	if p.Flags&fi.More == 0 {
		return
	}
	p.Match.Kind |= hot.MatchMore
	if alone {
		order.Store32(&e.rings, 1)
		return
	}
	atomic.StoreUint32(&e.rings, 1)
}

// unregister gives a registration back, 0: none, of an operation that has no place any more, and returns code, or
// hot.PostReturn where another thread has the cache for long.
func (e *Endpoint) unregister(p *hot.Post, memory uint32, code uintptr) uintptr {
	if memory == 0 || e.o.Cache.Undo(memory) {
		return code
	}
	p.Request = uint64(memory)
	return hot.PostReturn
}

// DirectRefused takes an operation back that the device has not taken. It returns hot.PostAgain or hot.PostGo, as the
// device says (hot.Post.Sent), or hot.PostReturn, where another thread has the stripe or the cache for long.
func (e *Endpoint) DirectRefused(p *hot.Post) uintptr {
	if p.Match.Kind&hot.MatchShared != 0 {
		e.unshare()
	}
	o, s := e.ops.at(p.Match.Context)
	memory := uint32(0)
	if o != nil {
		if !s.lease.Try() {
			return hot.PostReturn
		}
		memory = e.revoke(o, s, p)
	}
	code := uintptr(hot.PostGo)
	if p.Sent == hot.PathFull {
		code = hot.PostAgain
	}
	return e.unregister(p, memory, code)
}

// TakeBack does what is left of that behind hot.PostReturn.
func (e *Endpoint) TakeBack(p *hot.Post) {
	memory := uint32(p.Request)
	if o, s := e.ops.at(p.Match.Context); o != nil {
		s.lease.Take()
		memory = e.revoke(o, s, p)
	}
	if memory != 0 {
		e.o.Cache.PutNumber(memory)
	}
}

// revoke gives back the place of an operation that place has entered, and its copy, and returns its registration, 0:
// none. It ends the lease of the stripe, which the caller has.
func (e *Endpoint) revoke(o *place, s *tableStripe, p *hot.Post) (memory uint32) {
	memory = o.memory
	if o.copied != 0 {
		s.copies.Undo(uint32(o.copied))
	}
	e.ops.revoke(o, s, p.Match.Context)
	s.lease.Give()
	p.Match.Context = contextNone
	return memory
}

// DirectEnd takes in an event of the device's. ok is false where the runtime is to do that (MatchedEvent), and nothing
// has happened then; wanted where there is something to report. Lease.
func (e *Endpoint) DirectEnd(ev *hot.MatchEvent, c *Completion) (wanted, ok bool) {
	source := uint64(fi.AddrNotAvail)
	if ev.Flags&hot.MatchReceive != 0 && e.o.Source != nil {
		var known bool
		if source, known = e.senders.find(ev.From, e.o.Generation.Load()); !known {
			return false, false
		}
	}
	if ev.Flags&hot.MatchShared != 0 {
		e.endShared()
		o := sharedOf(ev.Context, ev.Length)
		c.fill(&o, ev)
		return true, true
	}
	o, s := e.ops.at(ev.Context)
	if o == nil {
		return false, true
	}
	// The domain counts deferred work.
	if o.flags&workFlag != 0 || o.memory != 0 && !e.o.Cache.Drop(o.memory) {
		return false, false
	}
	c.fill(&o.operation, ev)
	c.Entry.Src = source
	e.ops.end(o, s, ev.Context)
	return true, true
}

// MatchedEvent takes in an event that DirectEnd has left. Lease.
func (e *Endpoint) MatchedEvent(ev *hot.MatchEvent) {
	if o, ok := e.leave(ev.Context, true); ok {
		e.fill(&o, ev)
		e.o.Ended(&e.ended)
	}
}
