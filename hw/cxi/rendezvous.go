package cxi

import (
	"slices"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// Events of a message at its receiver, in any order. A rendezvous needs a put, where the rest is, and the reply.
const (
	seenTaken  = 1 << iota // it has found its receive
	seenPut                // its first bytes are in the receive
	seenAsked              // where the rest is
	seenReply              // the rest has arrived
	seenNotice             // its sender knows
)

// doing is what is to be posted for a message.
type doing uint8

const (
	doNothing doing = iota
	doGet           // get the rest
	doDone          // the notice that it has been got
	doMatched       // the notice that the message has found its receive
)

// arriving is a message that is on its way into a receive.
type arriving struct {
	r      *receive
	from   uint32 // match id of the sender
	vni    uint16 // in which it came; the reply of a get does not say
	number uint32 // lower eight bits of a rendezvous' number
	filled bool   // ev says what the message's match bits do
	seen   uint8
	needs  uint8 // what a rendezvous has seen when it ends
	ev     hw.MatchEvent
	code   uint32
	eager  uint32 // bytes that came at once

	rest   proto.Rendezvous
	known  bool   // rest is one of the protocol
	source uint64 // where the rest is at the sender

	do       doing
	bits     uint64 // of the notice
	index    uint32 // to which it goes
	notUntil time.Time
}

// begin finds the message of a receive that an event is of, or begins it. One that has seen the event is another with
// the same number, which its sender has given out again before the receiver takes in the last event.
func (x *matchRx) begin(r *receive, from, number uint32, long bool, seen uint8) *arriving {
	number &= 0xff
	fresh := arriving{r: r, from: from, number: number, code: wire.RcOk, needs: seenPut | seenAsked | seenReply}
	if !r.multi {
		if r.once.r == nil {
			r.once = fresh
		}
		return &r.once
	}
	for _, a := range r.parts {
		if long && a.from == from && a.number == number && a.seen&seen == 0 && a.needs != 0 {
			return a
		}
	}
	a := new(arriving)
	*a = fresh
	r.parts = append(r.parts, a)
	return a
}

// fill stores what the event of a message says, which begins at an offset of its receive's memory.
func (x *matchRx) fill(a *arriving, e nic.Event, offset uint64) {
	a.filled, a.vni = true, e.VNI()
	a.ev.Kind, a.ev.Context = hw.MatchReceived, a.r.context
	x.describe(&a.ev, e)
	x.extent(a, e, offset)
	if e.Rendezvous() {
		a.rest, a.known = proto.RendezvousOf(e.MatchBits(), e.RendezvousID())
	} else {
		a.needs = 0
	}
	x.judge(a, e)
}

// judge stores what an event says of how a message went: one that is an atomic operation is none.
func (x *matchRx) judge(a *arriving, e nic.Event) {
	switch code := e.Code(); {
	case code != wire.RcOk:
		a.code = code
	case performs(e):
		a.code = wire.RcOpViolation
		x.refuse("an atomic operation of %#x that has found a receive", a.from)
	}
}

// extent stores where a message goes.
func (x *matchRx) extent(a *arriving, e nic.Event, offset uint64) {
	a.ev.Wanted = uint64(e.Wanted())
	room := a.r.room
	a.ev.Offset = min(offset, room)
	a.ev.Length = min(a.ev.Wanted, room-a.ev.Offset)
}

// place is where a message with bytes begins in the memory of its receive, behind skip of its own.
func (a *arriving) place(e nic.Event, skip uint32) uint64 {
	if !a.r.multi || e.Wanted() == 0 {
		return 0
	}
	return e.Start() - uint64(skip) - a.r.entry.Memory.IOVA
}

// put takes in a message that has found its receive when it came.
func (x *matchRx) put(r *receive, e nic.Event) {
	a := x.begin(r, e.Initiator(), e.RendezvousID(), e.Rendezvous(), seenTaken)
	x.fill(a, e, a.place(e, 0))
	if r.multi && e.Last() {
		r.unlinked, r.total = true, a.ev.Offset+a.ev.Length
	}
	if r.multi { // software goes on behind it, should it get the receive
		r.start = max(r.start, a.ev.Offset+a.ev.Length)
	}
	a.eager = e.Length()
	if e.Rendezvous() && e.Code() == wire.RcOk {
		x.step(a, seenTaken|seenPut)
		return
	}
	x.end(a)
}

// asked takes in where the rest of a rendezvous is.
func (x *matchRx) asked(r *receive, e nic.Event) {
	from := proto.FromFabricAddress(e.Initiator(), x.m.pidBits, e.VNI())
	a := x.begin(r, nic.MatchID(from.NID, from.PID, x.m.pidBits), e.RendezvousID(), true, seenAsked)
	a.source, a.vni = e.Offset(), e.VNI()
	a.eager = e.Length()
	if !a.filled {
		x.extent(a, e, a.place(e, e.Length()))
		a.rest, a.known = proto.RendezvousOf(e.MatchBits(), e.RendezvousID())
	}
	if code := e.Code(); code != wire.RcOk {
		a.code = code
		a.needs &^= seenReply
	} else if !e.GetIssued() {
		x.get(a)
	}
	x.step(a, seenAsked)
}

// get has the rest of a rendezvous read, which the NIC does not by itself.
func (x *matchRx) get(a *arriving) {
	if !a.known {
		x.refuse("rendezvous of another protocol, or in address context %d", a.rest.LAC)
		a.code = wire.RcIllegalOp
		a.needs &^= seenReply
		return
	}
	a.do = doGet
	if a.rest.Protocol == proto.ProtocolRestricted {
		a.needs |= seenNotice
	}
	x.commands = append(x.commands, a)
}

// replied takes in that the NIC has got the rest of a rendezvous.
func (x *matchRx) replied(e nic.Event) {
	nid, pid, number, buffer := e.Fetched()
	r := x.posted(uint32(buffer))
	if !e.AnswerRendezvous() || r == nil {
		return
	}
	a := x.begin(r, nic.MatchID(nid, pid, x.m.pidBits), number, true, seenReply)
	if code := e.Code(); code != wire.RcOk {
		a.code = code
	}
	x.step(a, seenReply)
}

// answered takes in the end of a command for a message.
func (x *matchRx) answered(n *answer) {
	a := n.a
	if x.down.Load() {
		return // its receive ends with all
	}
	if n.again {
		a.notUntil = time.Now().Add(noticeDelay)
		x.commands = append(x.commands, a)
		return
	}
	did := a.do
	a.do = doNothing
	if did == doMatched { // the message is here, whatever its sender gets
		x.end(a)
		return
	}
	if n.code != wire.RcOk {
		a.code = n.code
	}
	seen := uint8(seenReply)
	switch {
	case did == doDone:
		seen = seenNotice
	case a.needs&seenNotice != 0: // also when the get has failed: the sender waits for nothing else
		a.do, a.bits, a.index = doDone, a.rest.Done(), proto.IndexDone
		x.commands = append(x.commands, a)
	}
	x.step(a, seen)
}

// step takes in an event of a rendezvous, which ends with the last.
func (x *matchRx) step(a *arriving, seen uint8) {
	if a.seen |= seen; a.seen&a.needs == a.needs {
		x.end(a)
	}
}

// end gives a message to its receive.
func (x *matchRx) end(a *arriving) {
	r, ev := a.r, a.ev
	if a.code != wire.RcOk {
		ev.Err = sendError(a.code)
	}
	if !r.multi {
		ev.Last = true
		x.retire(r)
		x.say(&ev)
		return
	}
	r.parts = slices.DeleteFunc(r.parts, func(o *arriving) bool { return o == a })
	r.used += ev.Length
	ev.Last = r.unlinked && r.used == r.total && len(r.parts) == 0
	if ev.Last {
		r.leaving = false
		x.retire(r)
	}
	x.say(&ev)
	if r.canceled && len(r.parts) == 0 && !ev.Last && !r.leaving {
		x.takenBack(r)
	}
}

// postCommands posts what is to be posted for messages, as far as there is room.
func (x *matchRx) postCommands() {
	t := &x.m.tx
	t.lock.take()
	defer t.release(false)
	list := x.commands
	x.commands = x.commands[len(x.commands):]
	now := time.Time{}
	for k, a := range list {
		if !a.notUntil.IsZero() {
			if now.IsZero() {
				now = time.Now()
			}
			if now.Before(a.notUntil) {
				x.commands = append(x.commands, a)
				continue
			}
		}
		if !t.help(a) {
			x.commands = append(x.commands, list[k:]...)
			return
		}
	}
}

// help posts a get or a notice. False: no room.
func (t *matchTx) help(a *arriving) bool {
	s, n := t.begin(0)
	if s == nil {
		return false
	}
	from := proto.FromMatchID(a.from, t.m.pidBits, a.vni)
	to, _ := t.m.find(hw.MatchAddress(from.Word()), a.index) // its message came in a network of the interface
	x := nic.Transfer{Message: nic.Message{To: to, MatchBits: a.bits, UserPtr: t.cookie(n)}, Initiator: t.m.self,
		EQ: t.events.number}
	if a.do != doGet {
		t.q.Put(&x)
		t.commit(s, sentNotice, 0)
		s.a = a
		return true
	}
	got := min(uint64(a.eager), a.ev.Length)
	x.Local = a.r.entry.Memory
	x.Local.IOVA += a.ev.Offset + got
	x.Local.Len = uint32(a.ev.Length - got)
	x.Offset, x.MatchBits, x.To.Index = a.source, a.rest.Source(), proto.IndexSource
	if a.rest.Protocol == proto.ProtocolRestricted {
		x.Restricted, x.MatchBits, x.To.Index = true, 0, proto.IndexRestricted+a.rest.LAC
		x.To.Profile = t.m.i.networks.restrictedOf(x.To.Profile)
	}
	t.q.Get(&x)
	t.commit(s, sentFetch, 0)
	s.a = a
	return true
}
