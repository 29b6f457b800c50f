package cxi

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
	"github.com/weft-fabric/weft/internal/mem"
)

// sentKind says what a command is of.
type sentKind uint8

const (
	sentNone       sentKind = iota
	sentEager               // a message that ends with its acknowledgement
	sentMatched             // one that waits for a notice if it was unexpected
	sentRendezvous          // one that ends when it is acknowledged and its data has been read
	sentFetch               // the get of a rendezvous' data, at its receiver
	sentNotice              // a notice to a sender
	sentControl             // a control message
	sentTransfer            // a read or write of a peer's region
	sentAtomic              // an atomic operation on one
	sentAsking              // a question whether a peer has room for events
	sentDropped             // a message that its receiver had no room for, and that is sent again
)

// sent is a command in flight.
type sent struct {
	kind       sentKind
	seen       uint8  // which events have come, of two
	code       uint32 // of the one that has failed
	generation uint32
	id         uint32 // of a message that waits for its match, or of a rendezvous
	context    uint64
	a          *arriving // of sentFetch and sentNotice
	acked      bool      // a message has arrived, so that what comes behind it may
	own        bool      // of sentTransfer and sentAtomic: the region has indices of its own
	data       bool      // of sentTransfer: a write with data
	tries      uint8     // of that: how often it was refused
	awaited    uint8     // of sentAtomic: answers that are to come
	fetched    uint8     // of sentAtomic: bytes that it fetches
	shared     bool      // of sentTransfer and sentAtomic: its context is that of several operations
	length     uint32    // of these: bytes that are written
	first      uint32    // slot of its command, as [nic.Event.Slot] names it; noSlot: the NIC has answered it
	last       uint32    // of the last one, if it has two
	lap        uint32    // of the queue ([nic.Queue.Lap]) when it was written
	doubtful   bool      // its event may have been dropped (overrun.go)
	out        outgoing
}

// outgoing is what a message is sent with, and sent again.
type outgoing struct {
	to      hw.MatchAddress
	at      nic.Address
	says    proto.Message
	data    uint64
	inline  uint32 // bytes of an inline message, which are a copy in the place (matchTx.inline)
	memory  nic.Memory
	matched bool
	number  uint64 // among all messages, in the order of posting
	bits    uint64 // of a control message
}

// underway reports whether the command is one that finds a receive, and whose answer has not come.
func (s *sent) underway() bool {
	return !s.acked && (s.kind == sentEager || s.kind == sentMatched || s.kind == sentRendezvous)
}

// How far the list entry of an address context is.
const (
	sourceNone = iota
	sourceAsked
	sourceReady
	sourceRefused // of a list for restricted gets: there is none
)

// receiverPlaces are places that messages leave to the receiver's side: senders wait for its commands.
const receiverPlaces = 16

// idNotices is the list entry of notices; those below it are of address contexts.
const idNotices = proto.LACs

// answer is what the receiver's side of a rendezvous or notice gets.
type answer struct {
	a     *arriving
	kind  sentKind
	code  uint32
	again bool // of a notice: the peer had no room for it
}

// matchTx is a transmit stripe of a matcher. Everything is guarded by its lock but for what is marked.
type matchTx struct {
	m      *matcher
	stripe uint32 // its number; immutable
	lock   bellLock
	q      nic.Queue
	cq     *libcxi.CQ
	events eventQueue
	// unrung says that commands may stand in the queue without a doorbell, because more were to follow. Set by
	// bellLock, under the lock or after it could not be had; cleared by the thread that rings; read by the lease
	// holder, and by C.
	unrung flag

	// messages says that the queue's state is that of messages.
	messages bool
	// doubtUntil is when what is doubtful ends, zero: nothing is.
	doubtUntil time.Time

	slots   []sent
	free    []uint32       // places; its capacity is their number
	shared  sharedContexts // of commands without a place
	inlines []byte         // copies of inline messages, of nic.MaxInline bytes for each place; off the Go heap

	posted    uint64 // messages
	full      map[hw.MatchAddress]*fullPeer
	drops     atomic.Uint64 // messages that receivers had no room for; written under the lock, read by any thread
	replaying []uint32      // places of messages that are to be sent again, in order
	controls  []control

	writes         dataWrites
	places         pinned // memory of what transfers inject, of placeBytes for each place
	ended, spare   []hw.MatchEvent
	answers, taken []answer
	// anyEnded says that ended or answers is not empty. Written under the lock, read by the lease holder.
	anyEnded atomic.Bool
	// anyControl says that replaying or controls is not empty. Written under the lock (controlling), read by the lease
	// holder.
	anyControl atomic.Bool
}

// open makes the queues. The list for data of rendezvous and notices is made with the receiver's.
func (t *matchTx) open() (err error) {
	d, n := t.m.i.d, t.m.cfg.Sends
	t.lock.guard(&t.q, &t.unrung)
	if err = t.events.open(d, t.m.eventBlocks(t.stripe), true, t.m.i.wait, 0); err != nil {
		return err
	}
	all := t.commandSlots() * (n + receiverPlaces + 2)
	slots := min(max(all, 256), wire.LimitCmdqCount/4)
	if t.cq, err = d.lni.NewTransmitQueue(slots, d.profile, t.events.eq); err != nil {
		t.cq = nil
		return limit(err)
	}
	t.q.Init(t.cq.Ring(), t.cq.Launch(), t.cq.HalfSlots())
	t.q.SetProfile(d.profile.LCID())
	t.state()
	t.full, t.writes.t = map[hw.MatchAddress]*fullPeer{}, t
	t.slots = make([]sent, n+receiverPlaces)
	t.free = make([]uint32, 0, len(t.slots))
	if t.inlines, err = mem.Map(len(t.slots)*nic.MaxInline, 0); err != nil {
		return fmt.Errorf("cxi: copies of messages: %w: %w", err, hw.ErrNoResource)
	}
	for k := len(t.slots) - 1; k >= 0; k-- {
		t.free = append(t.free, uint32(k))
	}
	return nil
}

func (t *matchTx) close() error {
	var err error
	if t.cq != nil {
		err = t.cq.Close()
		t.cq = nil
	}
	if t.inlines != nil {
		err = errors.Join(err, mem.Unmap(t.inlines))
		t.inlines = nil
	}
	return errors.Join(err, t.events.close(), t.places.close())
}

// state writes what inline messages have in common.
func (t *matchTx) state() {
	t.messages = t.q.SetState(&nic.State{Initiator: t.m.self, Index: proto.IndexMessages, EQ: t.events.number})
}

// ring has the NIC take what was posted.
func (t *matchTx) ring() { t.q.Ring() }

// release gives the lock back, and sees to the doorbell unless more follows (bellLock).
func (t *matchTx) release(more bool) {
	if more {
		t.lock.keep()
		return
	}
	t.unrung.take()
	t.lock.give()
}

// inFlight is the number of commands that have not ended.
func (t *matchTx) inFlight() int {
	t.lock.take()
	defer t.release(false)
	return len(t.slots) - len(t.free) + t.shared.underway()
}

// begin finds a free place for a command, for which there is room in the queue, and leaves so many. nil: none.
func (t *matchTx) begin(spare int) (*sent, uint32) {
	if !t.roomBut(spare) {
		return nil, 0
	}
	n := t.free[len(t.free)-1]
	return &t.slots[n], n
}

// roomBut reports whether a command may be posted where so many places are left: one without a place counts as one, as
// the event queue has room for so many answers. The caller has the lock.
func (t *matchTx) roomBut(spare int) bool {
	return len(t.free)-t.shared.underway() > spare && t.q.Room(1)
}

// cookie is what the events of the command in a place carry: generation, stripe and place.
func (t *matchTx) cookie(n uint32) uint64 { return t.cookieOf(&t.slots[n], n) }

// cookieOf is cookie of a place that is at hand.
func (t *matchTx) cookieOf(s *sent, n uint32) uint64 {
	return uint64(s.generation)<<32 | uint64(t.owner(n))
}

// commit takes the place.
func (t *matchTx) commit(s *sent, kind sentKind, context uint64) {
	t.free = t.free[:len(t.free)-1]
	s.kind, s.context, s.seen, s.code, s.acked = kind, context, 0, wire.RcOk, false
	s.data, s.tries, s.shared, s.length = false, 0, false, 0
	s.written(&t.q)
}

// written takes in that the command of the place is the queue's last one.
func (s *sent) written(q *nic.Queue) {
	s.first, s.lap = q.Slot(), q.Lap()
	s.last = s.first
}

// noSlot is where no command is.
const noSlot = ^uint32(0)

// taken takes in that the NIC has answered the command, or the first of two: a refusal is not of it from now on.
func (s *sent) taken() {
	if s.first = noSlot; s.kind != sentAtomic || s.awaited < 2 {
		s.last = noSlot
	}
}

// giveID gives back the id of a message.
func (t *matchTx) giveID(s *sent) {
	switch s.kind {
	case sentMatched:
		t.m.shared.matches.put(s.id)
	case sentRendezvous:
		t.m.shared.rendezvous(s.id).put(s.id)
	}
}

// end gives a place back, with its id.
func (t *matchTx) end(n uint32) {
	s := &t.slots[n]
	t.giveID(s)
	s.kind, s.doubtful = sentNone, false
	s.generation++
	t.free = t.free[:len(t.free)+1]
	t.free[len(t.free)-1] = n
}

// complete ends a message.
func (t *matchTx) complete(n uint32, err error) {
	s := &t.slots[n]
	ev := hw.MatchEvent{Kind: hw.MatchSent, Context: s.context, Last: true, Err: err}
	switch s.kind {
	case sentTransfer, sentAtomic:
		ev.Kind, ev.Shared, ev.Length = hw.MatchTransferred, s.shared, uint64(s.length)
		if s.kind == sentAtomic {
			ev.Fetched = t.fetchedBy(n)
		}
	}
	t.ended = append(t.ended, ev)
	t.endings()
	t.end(n)
}

// PostMatched posts a message.
func (m *matcher) PostMatched(p *hw.MatchSend) error {
	to, err := m.at(p.To, proto.IndexMessages)
	if err != nil {
		return err
	}
	var memory nic.Memory
	payload := p.Inject
	switch {
	case p.Tagged && p.Tag > proto.TagMask:
		return fmt.Errorf("cxi: tag %#x: %w", p.Tag, hw.ErrInvalid)
	case len(payload) > nic.MaxInline:
		return fmt.Errorf("cxi: injected message of %d bytes: %w", len(payload), hw.ErrTooLong)
	case p.Local.Len > 0 && len(payload) > 0:
		return fmt.Errorf("cxi: message of memory and injected bytes: %w", hw.ErrInvalid)
	case p.Local.Len > 0 && p.Local.Len <= nic.MaxInline:
		payload = segmentBytes(&p.Local)
	case p.Local.Len > 0:
		if memory, err = segmentMemory(&p.Local, false, maxMatched); err != nil {
			return err
		}
	}
	if m.i.closed.Load() {
		return errClosed
	}
	o := outgoing{
		to: p.To, at: to, memory: memory, matched: p.Matched,
		says: proto.Message{Tag: p.Tag, Tagged: p.Tagged, Data: p.HasData},
	}
	if p.HasData {
		o.data = p.Data
	}
	t := m.txOf(p.To)
	t.lock.take()
	err = t.post(&o, payload, p.Context)
	t.endPost(p.More)
	return err
}

// rendezvous writes the command of a long message.
func (t *matchTx) rendezvous(s *sent, n uint32) error {
	o := &s.out
	if ready, err := t.admit(o.memory.LAC); !ready {
		return err
	}
	protocol, known := t.protocol(o.memory.LAC)
	if !known {
		return hw.ErrNoResource
	}
	ids := &t.m.shared.untagged
	if o.says.Tagged {
		ids = &t.m.shared.tagged
	}
	id, ok := ids.take(t.owner(n))
	if !ok {
		return hw.ErrNoResource
	}
	s.id = id
	r := proto.Rendezvous{ID: id, LAC: o.memory.LAC, Protocol: protocol}
	m := nic.Message{To: o.at, MatchBits: r.Bits(o.says), HeaderData: o.data, UserPtr: t.cookie(n)}
	put := nic.Transfer{Message: m, Offset: o.memory.IOVA, Local: o.memory, Initiator: t.m.self}
	put.EQ = t.events.number
	t.q.PutRendezvous(&put, uint32(t.m.cfg.First), r.Low())
	return nil
}

// openNotices makes the list for data of rendezvous and notices. The receiver's target queue is there.
func (t *matchTx) openNotices() (err error) {
	i, p, list := t.m.i, &t.m.rx.portal, &t.m.shared.list
	if *list, err = p.place(i.d, &t.events, libcxi.PtlTEMatching, i.networks, proto.IndexSource); err != nil {
		return err
	}
	if err = i.networks.place(*list, proto.IndexDone); err != nil {
		return err
	}
	if err = p.enable(*list, &t.events, proto.IndexSource); err != nil {
		return err
	}
	e := nic.Entry{PtlTE: (*list).Number(), ID: idNotices, MatchID: nic.AnyID(), Put: true, NoUnlink: true}
	e.MatchBits, e.Ignore = proto.NoticeEntry()
	if !p.q.Append(&e) {
		return fmt.Errorf("cxi: the target queue is full: %w", hw.ErrNoResource)
	}
	p.q.Ring()
	code := uint32(0)
	err = t.events.await("append the entry for notices", func(v nic.Event) bool {
		code = v.Code()
		return v.Type() == wire.EventLink && v.BufferID() == idNotices
	}, &t.m.rx.events)
	if err == nil && code != wire.RcOk {
		err = fmt.Errorf("cxi: no room for the entry for notices (%s): %w", codeText(code), hw.ErrNoResource)
	}
	return err
}

// progress says what has ended, and returns how much. Lease.
func (t *matchTx) progress() (n int) {
	if t.events.Waiting() || t.anyControl.Load() {
		t.poll()
	}
	if !t.anyEnded.Load() {
		return 0
	}
	t.lock.take()
	ended, answers := t.ended, t.answers
	t.ended, t.spare = t.spare[:0], ended
	t.answers, t.taken = t.taken[:0], answers
	t.anyEnded.Store(false)
	t.release(false)
	for k := range answers {
		t.m.rx.answered(&answers[k])
		answers[k] = answer{}
	}
	for k := range ended {
		t.m.on(&ended[k])
	}
	return len(ended) + len(answers)
}

// poll takes in all events. Lease, or Close.
func (t *matchTx) poll() {
	t.lock.take()
	for e := t.events.Peek(); e.There(); e = t.events.Peek() {
		t.event(e)
		t.events.Done(e)
	}
	t.replay()
	t.postControls()
	t.writes.post()
	t.endDoubtful()
	t.noteControls()
	t.release(false)
}

// event takes one in.
func (t *matchTx) event(e nic.Event) {
	switch e.Type() {
	case wire.EventAck, wire.EventReply:
		if t.current(e.UserPtr()) {
			t.acknowledged(uint32(e.UserPtr())&placeMask, e.Code(), e.AnswerList())
		} else if context, ok := t.sharedEnd(e); ok {
			t.endShared(context, uint64(e.AnswerLength()), transferError(true, e.Code()))
		}
	case wire.EventGet:
		t.read(proto.SourceID(e.MatchBits()), e.Code())
	case wire.EventPut:
		t.noticed(e)
	case wire.EventLink:
		if lac := uint32(e.BufferID()); lac < proto.LACs {
			t.m.admitted(lac, e.Code())
		} else {
			t.m.restrictedBy(e)
		}
	case wire.EventStateChange:
		if !t.m.restrictedBy(e) {
			t.unknownOf(e)
		}
	case wire.EventCommandFailure:
		t.refusedCommand(e)
	default:
		t.unknownOf(e)
	}
}

// acknowledged takes in the answer to a command.
func (t *matchTx) acknowledged(n, code, list uint32) {
	s := &t.slots[n]
	s.taken()
	if s.underway() {
		if code == wire.RcPtDisabled {
			t.dropped(n)
			return
		}
		s.acked = true
		if len(t.full) > 0 {
			t.resolved(s.out.to)
		}
	}
	switch s.kind {
	case sentControl:
		t.controlled(n, code)
	case sentEager:
		t.complete(n, sendError(code))
	case sentAsking:
		t.writes.answered(n, code)
	case sentTransfer:
		if !s.data || code != wire.RcEntryNotFound || !t.writes.refused(n) {
			t.complete(n, transferError(s.own, code))
		}
	case sentAtomic:
		t.performed(n, code)
	case sentMatched, sentRendezvous:
		if code != wire.RcOk || s.kind == sentMatched && list == wire.ListPriority {
			t.complete(n, sendError(code))
			return
		}
		t.step(n, seenAck, code)
	case sentFetch, sentNotice:
		again := s.kind == sentNotice && judge(code) == refused
		t.answers = append(t.answers, answer{a: s.a, kind: s.kind, code: code, again: again})
		t.endings()
		s.a = nil
		t.end(n)
	}
}

// Events of a rendezvous, or of a message that waits for its match, at its sender.
const (
	seenAck  = 1 << iota // the first bytes have arrived
	seenRead             // the rest has been read, or the match is noticed
	seenSent = seenAck | seenRead
)

// step takes in an event of a message, which ends with the second. They come over different paths, in any order, and
// the sender of a full receiver counts acknowledgements.
func (t *matchTx) step(n uint32, seen uint8, code uint32) {
	s := &t.slots[n]
	if code != wire.RcOk {
		s.code = code
	}
	if s.seen |= seen; s.seen == seenSent {
		t.complete(n, sendError(s.code))
	}
}

// stepOf is step of the message that has an id, of whatever stripe. False: there is none. The caller has the lock.
func (t *matchTx) stepOf(ids *sharedNumbers, id, code uint32) bool {
	owner := ids.find(id)
	if owner == noOp {
		return false
	}
	o, n := t.m.txs[owner>>placeBits], owner&placeMask
	if o != t {
		o.lock.take()
		defer o.release(false)
	}
	s := &o.slots[n]
	if !s.awaitsNotice() || s.id != id {
		return false // it was not posted after all
	}
	o.step(n, seenRead, code)
	return true
}

// read says that a receiver has read the data of a rendezvous. A peer may name any.
func (t *matchTx) read(id, code uint32) {
	if !t.stepOf(t.m.shared.rendezvous(id), id, code) {
		t.m.rx.refuse("data of rendezvous %d was read, which is none", id)
	}
}

// noticed takes in a notice, which any peer may send: libfabric's provider does not put its sender into it.
func (t *matchTx) noticed(e nic.Event) {
	id, done, ok := proto.NoticeOf(e.MatchBits())
	ids := &t.m.shared.matches
	if done {
		ids = t.m.shared.rendezvous(id)
	}
	if !ok || !t.stepOf(ids, id, e.Code()) {
		t.m.rx.refuse("notice %#x of no message", e.MatchBits())
	}
}

// fail ends everything in flight.
func (t *matchTx) fail(err error) {
	t.lock.take()
	t.failAll(err)
	t.release(false)
}

func (t *matchTx) failAll(err error) {
	clear(t.full)
	t.replaying, t.controls = nil, nil
	t.writes.forget()
	t.failShared(err)
	for n := range t.slots {
		t.abandon(uint32(n), err)
	}
}

// noticeDelay is how long a notice for which the peer had no room rests.
const noticeDelay = time.Millisecond
