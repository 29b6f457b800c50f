package cxi

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/hw/cxi/libcxi"
)

// Flow control at the receiver. When the NIC has disabled the list because messages found no room, the unexpected
// messages that it keeps are taken over, which frees their buffers and list entries: receives posted from then on are
// matched with these first. The list is enabled again when the senders have reported as many drops as the NIC has
// counted.

// flowState says how far that is. Posts read it under the lock.
type flowState uint8

const (
	flowOpen   flowState = iota // the NIC takes messages
	flowFlush                   // appends that were posted before take effect
	flowOnload                  // unexpected messages are taken over
	flowBytes                   // events of their bytes are to come
	flowClosed                  // until senders have reported all drops
)

// softMessage is an unexpected message that the NIC keeps no longer.
type softMessage struct {
	ev      nic.Kept // of its removal
	payload []byte   // its first bytes
	ready   bool     // they are there
	source  uint64   // where the rest is at the sender
}

// softMatch is one that has found its receive.
type softMatch struct {
	r      *receive
	s      *softMessage
	offset uint64
}

// flow is the receiver's flow control. It belongs to the lease holder, but for what is marked.
type flow struct {
	x      *matchRx
	events eventQueue // control messages

	state   flowState      // under the receiver's lock, as what follows to matches
	list    []*softMessage // in the order in which they came
	matches []softMatch
	found   []hw.MatchEvent // searches of list
	// local says that matches or found is not empty. Stored under the lock, read by the lease holder and Pending.
	local atomic.Bool

	offsets  []uint64 // of the messages that are to be taken over
	removing int      // those that are on their way
	missing  int      // those whose bytes are to come
	wanted   map[earlyKey]*softMessage
	drops    int64 // that senders have reported, and the value at which the NIC's count begins
	notified []hw.MatchAddress
}

// idOnload is the id of searches that take messages over.
func (x *matchRx) idOnload() uint16 { return uint16(len(x.early.buffers)) + 1 }

// steady reports whether receives may be appended. The caller has the lock.
func (f *flow) steady() bool { return f.state == flowOpen || f.state == flowClosed }

// base is where the NIC's count of drops begins: the message for which it has disabled the list is the first.
func (f *flow) base() int64 {
	if f.x.m.i.d.dev.Version>>4 < 2 {
		return -1
	}
	return 0
}

// open makes the list for control messages.
func (f *flow) open(x *matchRx) error {
	f.x, f.wanted, f.drops = x, map[earlyKey]*softMessage{}, 0
	f.drops = f.base()
	i := x.m.i
	if err := f.events.open(i.d, 255, true, i.wait, 0); err != nil {
		return err
	}
	pte, err := x.portal.place(i.d, &f.events, libcxi.PtlTEMatching|libcxi.PtlTELong, i.pid, proto.IndexControl)
	if err == nil {
		err = x.portal.enable(pte, &f.events, proto.IndexControl)
	}
	if err != nil {
		return err
	}
	e := nic.Entry{PtlTE: pte.Number(), ID: 1, MatchID: nic.AnyID(), Put: true, NoUnlink: true}
	e.MatchBits, e.Ignore = proto.ControlEntry()
	if !x.portal.q.Append(&e) {
		return fmt.Errorf("cxi: the target queue is full: %w", hw.ErrNoResource)
	}
	x.portal.q.Ring()
	code := uint32(0)
	err = f.events.await("append the entry for control messages", func(v nic.Event) bool {
		code = v.Code()
		return v.Type() == wire.EventLink
	}, &x.events)
	if err == nil && code != wire.RcOk {
		err = fmt.Errorf("cxi: no room for the entry for control messages (%s): %w", codeText(code),
			hw.ErrNoResource)
	}
	return err
}

// progress takes in control messages.
func (f *flow) progress() (n int) {
	for e := f.events.Peek(); e.There(); e = f.events.Peek() {
		if e.Type() == wire.EventPut && e.Code() == wire.RcOk {
			f.control(e)
			n++
		}
		f.events.Done(e)
	}
	return n + f.deliver()
}

// control takes in a control message, which any peer may send.
func (f *flow) control(e nic.Event) {
	from := f.x.m.address(e.Initiator(), e.VNI())
	kind, drops, ok := proto.ControlOf(e.MatchBits())
	switch {
	case !ok:
		f.x.malformed.Add(1)
		f.x.m.i.logf("control message %#x from %#x", e.MatchBits(), uint64(from))
	case kind == proto.ControlNotify:
		f.drops += int64(drops)
		f.notified = append(f.notified, from)
		f.enable()
	default:
		f.x.m.tx.resumed(from)
	}
}

// changed takes in that the state of the list has changed.
func (f *flow) changed(e nic.Event) {
	x := f.x
	reason, automatic := e.Automatic()
	switch {
	case e.Code() != wire.RcOk: // there are drops that no sender has reported yet
	case e.State() == wire.PtlteStateDisabled && automatic:
		x.m.i.logf("messages find no room (reason %d): senders wait", reason)
		x.events.Return()
		x.lock.take()
		f.state = flowFlush
		x.portal.q.Search(&nic.Entry{PtlTE: x.pte.Number(), ID: x.idOnload(), MatchBits: ^uint64(0),
			MatchID: nic.AnyID(), Once: true})
		x.portal.q.Ring()
		x.lock.release()
	case e.State() == wire.PtlteStateEnabled && f.state == flowClosed:
		x.lock.take()
		f.state = flowOpen
		x.lock.release()
		f.drops = f.base()
		t := &x.m.tx
		t.lock.take()
		for _, to := range f.notified {
			t.control(to, proto.Control(proto.ControlResume, 0))
		}
		t.postControls()
		t.release(false)
		f.notified = f.notified[:0]
	}
}

// take takes in an event of a search that takes messages over.
func (f *flow) take(e nic.Event) {
	switch {
	case e.Type() == wire.EventPutOverflow && f.state == flowOnload:
		f.onload(e)
		f.removeMore()
	case e.Type() == wire.EventSearch && f.state == flowFlush:
		f.remove()
	}
}

// remove takes over all unexpected messages. No append is under way, and the NIC takes no messages.
func (f *flow) remove() {
	x := f.x
	var err error
	if f.offsets, err = x.pte.Offsets(); err != nil {
		x.m.i.logf("%v", err)
	}
	f.removing = 0
	x.lock.take()
	f.state = flowOnload
	x.lock.release()
	f.removeMore()
}

// removeAtOnce is how many messages are taken over at a time: their events need room in a queue that may be full.
const removeAtOnce = 8

// removeMore takes over some more messages, and goes on when there are none.
func (f *flow) removeMore() {
	x := f.x
	if len(f.offsets) == 0 {
		f.state = flowBytes
		f.onloaded()
		return
	}
	e := nic.Entry{PtlTE: x.pte.Number(), ID: x.idOnload(), Ignore: ^uint64(0), MatchID: nic.AnyID(), Once: true}
	x.lock.take()
	for f.removing < min(removeAtOnce, len(f.offsets)) && x.portal.q.Room(1) && x.portal.q.Remove(&e) {
		f.removing++
	}
	x.portal.q.Ring()
	x.lock.release()
}

// onload takes over one message.
func (f *flow) onload(e nic.Event) {
	if len(f.offsets) == 0 {
		return
	}
	s := &softMessage{ev: e.Keep(), source: f.offsets[0] + uint64(e.Length())}
	f.offsets = f.offsets[1:]
	f.removing--
	if e.Code() != wire.RcOk {
		return // it was not there
	}
	f.x.lock.take()
	f.list = append(f.list, s)
	f.x.lock.release()
	if e.Wanted() == 0 {
		s.ready = true
		return
	}
	y := &f.x.early
	key := y.key(e)
	if k, ok := y.here[key]; ok {
		delete(y.here, key)
		f.bytes(s, k.Event())
		return
	}
	f.missing++
	f.wanted[key] = s
}

// landed gives a message the event of its bytes, if it is one that was taken over.
func (f *flow) landed(key earlyKey, e nic.Event) bool {
	s := f.wanted[key]
	if s == nil {
		return false
	}
	delete(f.wanted, key)
	f.missing--
	f.bytes(s, e)
	f.onloaded()
	return true
}

// bytes copies a message's bytes, so that its buffer may be used again.
func (f *flow) bytes(s *softMessage, e nic.Event) {
	s.payload = append(s.payload, f.x.early.bytes(e)...)
	s.ready = true
}

// onloaded goes on when all messages were taken over.
func (f *flow) onloaded() {
	if f.state != flowBytes || f.missing > 0 {
		return
	}
	x := f.x
	x.early.list()
	x.lock.take()
	f.state = flowClosed
	// Receives that the NIC had no entry for are older than those that are posted from now on.
	x.waiting = slices.DeleteFunc(x.waiting, func(id uint16) bool {
		r := x.receive(id)
		return r != nil && !x.probing && f.match(r)
	})
	x.lock.release()
	f.enable()
}

// enable has the NIC take messages again, if it has dropped as many as senders have reported.
func (f *flow) enable() {
	if f.state != flowClosed || f.drops < 0 {
		return
	}
	f.x.command(func(q *nic.Queue) bool { return q.Resume(f.x.pte.Number(), uint32(f.drops)) })
}

// matches reports whether an entry takes a message.
func (s *softMessage) matches(e *nic.Entry) bool {
	ev := s.ev.Event()
	return (ev.MatchBits()^e.MatchBits)&^e.Ignore == 0 && (e.MatchID == nic.AnyID() || e.MatchID == ev.Initiator())
}

// match gives a receive that is not appended yet the messages that were taken over, and reports whether it takes no
// more. The caller has the lock.
func (f *flow) match(r *receive) (spent bool) {
	f.list = slices.DeleteFunc(f.list, func(s *softMessage) bool {
		if spent || !s.matches(&r.entry) {
			return false
		}
		ev := s.ev.Event()
		f.matches = append(f.matches, softMatch{r, s, r.start})
		f.local.Store(true)
		room := uint64(len(r.into)) - r.start
		if r.multi {
			r.start += min(uint64(ev.Wanted()), room)
			spent = uint64(len(r.into))-r.start < uint64(r.entry.MinFree)
		} else {
			spent = true
		}
		return true
	})
	if spent {
		r.taken, r.unlinked, r.total = true, true, r.start
	}
	r.skip = r.start
	return spent
}

// search answers a search with a message that was taken over. The caller has the lock.
func (f *flow) search(r *receive) bool {
	for _, s := range f.list {
		if s.matches(&r.entry) {
			ev := hw.MatchEvent{Kind: hw.MatchFound, Context: r.context, Last: true}
			f.x.describe(&ev, s.ev.Event())
			f.found = append(f.found, ev)
			f.local.Store(true)
			f.x.freeID(r)
			return true
		}
	}
	return false
}

// deliver gives receives the messages that were matched with them when they were posted.
func (f *flow) deliver() int {
	x := f.x
	if !f.local.Load() {
		return 0
	}
	x.lock.take()
	matches, found := f.matches, f.found
	f.matches, f.found = nil, nil
	f.local.Store(false)
	x.lock.release()
	for k := range found {
		x.say(&found[k])
	}
	for _, m := range matches {
		e := m.s.ev.Event()
		a := x.begin(m.r, e.Initiator(), e.RendezvousID(), e.Rendezvous(), seenTaken)
		x.fill(a, e, m.offset)
		copy(m.r.into[a.ev.Offset:], m.s.payload[:min(uint64(len(m.s.payload)), a.ev.Length)])
		if !e.Rendezvous() {
			x.matched(a, e.MatchBits())
			continue
		}
		a.eager, a.source = e.Length(), m.s.source
		a.needs = seenPut | seenReply
		x.get(a)
		x.step(a, seenTaken|seenPut)
	}
	return len(matches) + len(found)
}
