package cxi

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/seam"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// C threads post messages and receives that the NIC matches, and reads, writes and atomic operations on peers' regions,
// and take in what has become of them, by the functions of this file: without the Go runtime, as those of
// driven_unsafe.go. They do the common case: messages that go at once and receives of one message, of a receiver that
// is not being stopped and has nothing that software is to match, and operations on regions, with data where the peer
// is known to have room for it. All else is Go's.

// HotMatch is what the data plane drives, nil: it does not (hw.DrivenMatching).
func (i *Iface) HotMatch() *hot.MatchTransport {
	if i.match == nil || i.driver.transport.Len() == 0 {
		return nil
	}
	return &i.driver.transport.At(0).Match
}

// Alone has threads that are alone, by a word, take no lock of what the NIC matches (hw.DrivenMatching).
func (i *Iface) Alone(w order.Word) {
	s, x := &i.match.shared, &i.match.rx
	for _, l := range []*queueLock{&s.matches.lock, &s.untagged.lock, &s.tagged.lock, &x.lock.spin} {
		l.alone = w
	}
	x.unrung.alone, s.corked.alone = w, w
	for _, q := range []*eventQueue{&x.events, &x.flow.events} {
		q.Alone(w)
	}
	for _, t := range i.match.txs {
		t.lock.spin.alone, t.unrung.alone = w, w
		t.events.Alone(w)
	}
}

// onesided are the kinds of operations on peers' regions.
const onesided = hot.MatchWrite | hot.MatchRead | hot.MatchAtomic

// PostMatched posts a message, a receive, or an operation on a peer's region (seam.Functions).
func PostMatched(transport, post, bell, _ uintptr) uintptr {
	i := (*Iface)(seam.MatchTransportAt(transport).Iface())
	p, b := seam.MatchPostAt(post), seam.BellAt(bell)
	if i.closed.Load() {
		return hot.PathGo
	}
	switch {
	case p.Kind&hot.MatchReceive != 0:
		return i.match.rx.postPath(p, b)
	case p.Kind&onesided != 0:
		return i.match.txOf(hw.MatchAddress(p.Peer)).accessPath(p, b)
	}
	return i.match.txOf(hw.MatchAddress(p.Peer)).postPath(p, b)
}

// postPath posts a message.
func (t *matchTx) postPath(p *hot.MatchPost, b *seam.Bell) uintptr {
	if p.Length > uint32(t.m.cfg.Eager) || !t.lock.try() {
		return hot.PathGo
	}
	said := uintptr(hot.PathGo)
	if len(t.full) == 0 && len(t.replaying) == 0 {
		said = hot.PathFull // there are events to come
		if s, n := t.begin(receiverPlaces); s != nil {
			said = t.postIn(s, n, p)
		}
	}
	return t.leave(said, p, b)
}

// postIn posts the message of a post in a place, and returns what has become of it. It stores each field of the message
// where it is: a whole one would be copied there.
func (t *matchTx) postIn(s *sent, n uint32, p *hot.MatchPost) uintptr {
	o := &s.out
	if !t.m.locate(&o.at, hw.MatchAddress(p.Peer), proto.IndexMessages) {
		return hot.PathGo
	}
	o.to, o.matched, o.number = hw.MatchAddress(p.Peer), p.Kind&hot.MatchAwaited != 0, t.posted
	o.says.Tag, o.says.Tagged, o.says.Data = p.Tag, p.Kind&hot.MatchTagged != 0, p.Kind&hot.MatchData != 0
	o.data, o.inline, o.memory, o.bits = 0, 0, nic.Memory{}, 0
	if o.says.Data {
		o.data = p.Data
	}
	switch {
	case p.Buf != 0:
		o.inline = uint32(copy(t.inline(n)[:], seam.Bytes(p.Buf, p.Length)))
	case p.Length != 0:
		o.memory = nic.Memory{IOVA: p.At, LAC: p.Space, Len: p.Length}
	}
	if !t.postPlaced(s, n, p.Context) {
		return hot.PathFull // it has no id
	}
	return hot.PathSent
}

// inline is the copy of an inline message in a place, which is one: posts take it from t.free.
func (t *matchTx) inline(n uint32) *[nic.MaxInline]byte {
	return (*[nic.MaxInline]byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(t.inlines)), int(n)*nic.MaxInline))
}

// leave gives the lock back behind a post, of which it returns what has become.
func (t *matchTx) leave(said uintptr, p *hot.MatchPost, b *seam.Bell) uintptr {
	if said == hot.PathSent && p.Kind&hot.MatchMore != 0 {
		t.lock.keep()
		t.m.leaves()
		return said
	}
	t.unrung.take()
	t.lock.leave(b)
	if s := &t.m.shared; s.corked.isSet() && s.corked.take() { // as a rule no call
		b.Rest = 1
	}
	return said
}

// RingRest rings for what was left in the next queue, as posts with More behind which one without has come to another
// queue (seam.Functions).
func RingRest(transport, bell, from, _ uintptr) uintptr {
	m := (*Iface)(seam.MatchTransportAt(transport).Iface()).match
	for k := int(from); k < len(m.txs); k++ {
		t := m.txs[k]
		switch {
		case !t.unrung.isSet():
		case t.lock.try():
			t.unrung.take()
			t.lock.leave(seam.BellAt(bell))
			return uintptr((k + 1) % len(m.txs))
		default:
			m.leaves() // the next post tries again, or a poll rings
		}
	}
	return 0
}

// accessPath posts an operation on a peer's region.
func (t *matchTx) accessPath(p *hot.MatchPost, b *seam.Bell) uintptr {
	data := p.Kind&hot.MatchData != 0
	at, ok := regionOf(p.Tag, p.Data, data)
	performs := p.Kind&hot.MatchAtomic != 0
	a := access{at: at, get: p.Kind&hot.MatchRead != 0, delivered: p.Kind&hot.MatchDelivered != 0, data: data}
	a.more = p.Kind&(hot.MatchOrdered|hot.MatchEvents) != 0 || performs
	a.shared = p.Kind&hot.MatchShared != 0
	to, known := t.m.find(hw.MatchAddress(p.Peer), a.index())
	if a.to = to; !ok || !known || !t.lock.try() {
		return hot.PathGo
	}
	said := uintptr(hot.PathGo)
	t.m.i.networks.restrict(&a)
	switch {
	case t.places.md == nil && (performs && a.placed() || !performs && p.Buf != 0 && !a.inline(int(p.Length))):
		// what places have is mapped the first time
	case data && !t.writes.admits(hw.MatchAddress(p.Peer)):
	case performs:
		said = t.performPath(&a, p)
	default:
		said = hot.PathFull // there are events to come
		c := nic.Transfer{}
		var inject []byte
		if p.Buf != 0 {
			inject = seam.Bytes(p.Buf, p.Length)
		} else {
			c.Local = nic.Memory{IOVA: p.At, LAC: p.Space, Len: p.Length}
		}
		if data {
			c.HeaderData = p.Immediate
		}
		if s, n, ok := t.transfer(&a, &c, inject, p.Context); ok {
			said = hot.PathSent
			if data {
				t.writes.keep(s, n, hw.MatchAddress(p.Peer), &c)
			}
		}
	}
	return t.leave(said, p, b)
}

// performPath writes the command of an atomic operation. The caller has the lock.
func (t *matchTx) performPath(a *access, p *hot.MatchPost) uintptr {
	op, kind := hw.MatchOp(p.Op), hw.MatchType(p.Op>>hot.MatchTypeShift)
	o, d, ok := atomicOf(op, kind, a.get)
	if !ok || uint64(d.bytes) != uint64(p.Length) {
		return hot.PathGo
	}
	var operand, compare [operandBytes]byte
	if p.Buf != 0 {
		copy(operand[:], seam.Bytes(p.Buf, p.Length))
	}
	if p.Compare != 0 {
		copy(compare[:], seam.Bytes(p.Compare, p.Length))
	}
	operands(op, &operand, &compare)
	if !t.atomic(a, &o, &d, &operand, &compare, p.Context) {
		return hot.PathFull
	}
	return hot.PathSent
}

// postPath posts a receive of one message.
func (x *matchRx) postPath(p *hot.MatchPost, b *seam.Bell) uintptr {
	from := nic.AnyID()
	ok := true
	if p.Kind&hot.MatchAny == 0 {
		from, ok = x.m.sender(hw.MatchAddress(p.Peer))
	}
	if !ok || !appends(x.flow.state()) || !x.lock.try() {
		return hot.PathGo
	}
	var r *receive
	if appends(x.flow.state()) && x.untroubled() && x.portal.q.Room(1) && x.certain() {
		if r = x.identify(receivePosted, p.Buf, uint64(p.Length), p.Context); r != nil {
			e := &r.entry
			x.m.describe(e, from, p.Tag, p.Data, p.Kind&hot.MatchTagged != 0)
			e.ID, e.Once, e.Length = uint16(r.id), true, uint64(p.Length)
			e.Memory = nic.Memory{IOVA: p.At, LAC: p.Space, Len: p.Length}
			x.append(e)
		}
	}
	if r != nil && p.Kind&hot.MatchMore != 0 {
		x.lock.keep()
		return hot.PathSent
	}
	x.unrung.take()
	x.lock.leave(b)
	if r == nil {
		return hot.PathGo
	}
	return hot.PathSent
}

// untroubled reports whether the NIC alone matches, and has all receives that were posted. The caller has the lock.
func (x *matchRx) untroubled() bool {
	return !x.flow.core.software && len(x.waiting) == 0 && x.soft.count() == 0
}

// NextMatched takes in the end of a message or receive (seam.Functions). A poll begins with the queue of events behind
// that where the last one has found something, so that none of them waits for another to be empty, and goes on with
// what it knows to be there. Lease.
func NextMatched(transport, event, bell, _ uintptr) uintptr {
	p, b := seam.MatchTransportAt(transport), seam.BellAt(bell)
	i := (*Iface)(p.Iface())
	found := p.Watch.Found()
	switch {
	case found == 0:
		return hot.TransportEmpty
	case found&hot.WatchOther != 0 && (i.troubled() || i.match.troubled()):
		return hot.TransportGo
	}
	ev := seam.MatchEventAt(event)
	m := i.match
	if found&hot.WatchNext == 0 {
		m.pass()
	}
	for range len(m.txs) + 1 {
		var said uintptr
		q := &m.rx.events
		if m.turn == 0 {
			said = m.rx.next(ev, b)
		} else {
			t := m.txs[m.turn-1]
			said, q = t.next(ev, b), &t.events
		}
		if said != hot.TransportEmpty {
			return expecting(&p.Watch, q, said)
		}
		m.pass()
	}
	return hot.TransportEmpty
}

// pass goes on to the next queue of events.
func (m *matcher) pass() {
	if m.turn++; m.turn > uint32(len(m.txs)) {
		m.turn = 0
	}
}

// expecting returns what was found in a queue, and has the next call know whether another event is behind that.
func expecting(w *hot.Watch, q *eventQueue, found uintptr) uintptr {
	if found == hot.TransportMatched && q.Waiting() {
		w.Expect()
	}
	return found
}

// troubled reports whether Progress has something to do that is none of the matcher's events.
func (i *Iface) troubled() bool {
	if i.closed.Load() || i.anyTodo.Load() || i.rx.unlisted > 0 || i.flushes.Any() ||
		i.driver.corked.isSet() || i.rx.events.Waiting() {
		return true
	}
	for _, q := range i.tx {
		if q.anyCompleted.Load() || q.events.Waiting() {
			return true
		}
	}
	return false
}

// troubled reports whether Progress has something to do that is no event of a message or receive.
func (m *matcher) troubled() bool {
	return m.unrung() || m.awaits() || m.rx.soft.local.Load() || m.shared.ended.Load() ||
		m.rx.flow.events.Waiting()
}

// next takes in what has become of a message.
func (t *matchTx) next(ev *hot.MatchEvent, b *seam.Bell) uintptr {
	for e := t.events.PeekAny(); e.There(); e = t.events.PeekAny() {
		null := e.Type() == wire.EventNull
		if !null {
			ok, last := t.arrived(e, ev)
			if !ok {
				t.events.Pause()
				return hot.TransportGo
			}
			null = !last
		}
		if found := t.m.freed(&t.events, e, null, b); found != hot.TransportEmpty {
			return found
		}
	}
	return hot.TransportEmpty
}

// freed frees an event, with C ringing if it is time for that: hot.TransportEmpty has the caller go on to the next one.
func (m *matcher) freed(q *eventQueue, e nic.Event, null bool, b *seam.Bell) uintptr {
	due := q.Free(e)
	if due {
		word, value := q.Due()
		b.Ring(word, value, q.Lock())
		if q.Overran() {
			m.rx.later.Store(true) // Progress acts on it
		}
	}
	if null && !due {
		return hot.TransportEmpty
	}
	q.Pause()
	if null {
		return hot.TransportAgain
	}
	return hot.TransportMatched
}

// plainly reports whether an operation ends with a successful answer, and there is no more to say of it than that.
func (s *sent) plainly(e nic.Event) bool {
	switch s.kind {
	case sentEager, sentTransfer:
		return true
	case sentMatched:
		return e.AnswerList() == wire.ListPriority
	case sentAtomic:
		return s.awaited != 0 && s.code == wire.RcOk
	}
	return false
}

// arrived takes in the event of a message that has arrived, or of an operation that was performed; last is false where
// there is one more to come of it, and nothing to say. ok is false where it is another's, and nothing is changed.
func (t *matchTx) arrived(e nic.Event, ev *hot.MatchEvent) (ok, last bool) {
	if e.Type() != wire.EventAck && e.Type() != wire.EventReply || e.Code() != wire.RcOk || !t.lock.tryQuietly() {
		return false, false
	}
	n := uint32(e.UserPtr()) & placeMask
	ok = n < uint32(len(t.slots)) && len(t.full) == 0
	if context, shared := t.sharedEnd(e); shared {
		ev.Context, ev.Flags, ev.Length = uint64(context), hot.MatchShared, uint64(e.AnswerLength())
		t.lock.keep()
		return true, true
	}
	if ok {
		s := &t.slots[n]
		ok = s.generation == uint32(e.UserPtr()>>32) && s.plainly(e)
		if last = ok && !s.awaitsMore(); last {
			ev.Context, ev.Flags = s.context, 0
			if s.kind == sentAtomic && s.fetched != 0 {
				ev.Flags, ev.Fetched = hot.MatchRead, t.fetchedBy(n)
			}
			if s.shared {
				ev.Flags, ev.Length = hot.MatchShared, uint64(s.length)
			}
			t.end(n)
		}
	}
	t.lock.keep() // what a thread has posted may stand there
	return ok, last
}

// awaitsMore takes in an answer about an operation, and reports whether another is to come.
func (s *sent) awaitsMore() bool {
	if s.kind != sentAtomic {
		return false
	}
	s.awaited--
	return s.awaited != 0
}

// next takes in the message of a receive.
func (x *matchRx) next(ev *hot.MatchEvent, b *seam.Bell) uintptr {
	for e := x.events.PeekAny(); e.There(); e = x.events.PeekAny() {
		null := e.Type() == wire.EventNull
		if !null && !x.came(e, ev) {
			x.events.Pause()
			return hot.TransportGo
		}
		if found := x.m.freed(&x.events, e, null, b); found != hot.TransportEmpty {
			return found
		}
	}
	return hot.TransportEmpty
}

// came takes in a message that came as a whole and found its receive. False: it is another's event, and nothing is
// changed.
func (x *matchRx) came(e nic.Event, ev *hot.MatchEvent) bool {
	if e.Type() != wire.EventPut || e.Code() != wire.RcOk || e.Rendezvous() || !taking(x.flow.state()) ||
		!x.lock.tryQuietly() {
		return false
	}
	r := x.receive(uint32(e.BufferID()))
	ok := r != nil && r.simple() && uint64(e.Wanted()) <= r.room
	if ok {
		says := proto.MessageOf(e.MatchBits())
		ev.Context, ev.From, ev.Tag = r.context, uint64(x.m.sentBy(e)), says.Tag
		ev.Length, ev.Flags = uint64(e.Wanted()), hot.MatchReceive
		if says.Tagged {
			ev.Flags |= hot.MatchTagged
		}
		if says.Data {
			ev.Flags |= hot.MatchData
			ev.Data = e.HeaderData()
		}
		x.giveID(r)
	}
	x.lock.keep() // what a thread has posted may stand there
	return ok
}

// simple reports whether a receive takes one message, and is as it was entered. The caller has the lock.
func (r *receive) simple() bool {
	return r.state == receivePosted && !r.multi && !r.canceling && !r.canceled && !r.recalling && !r.taken &&
		r.posted == nil && r.once.r == nil && r.skip == 0 && r.start == 0
}
