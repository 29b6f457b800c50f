package cxi

import (
	"fmt"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
)

// slotState says where a message is.
type slotState uint8

const (
	slotQueued  slotState = iota // to be posted
	slotPosted                   // its event is to come
	slotArrived                  // the peer's NIC has it
)

// slot is a message that the peer may not have yet.
type slot struct {
	state  slotState
	low    uint32 // lower half of its match bits
	n      uint32 // bytes
	bounce int32  // -1: none
	header uint64
	memory nic.Memory // what the NIC reads; Len 0: data
	data   [nic.MaxInline]byte
}

// sending says what may be posted from a window.
type sending uint8

const (
	flowing sending = iota // everything
	waiting                // nothing before retryAt
	trying                 // one message is on its way, to see whether the peer takes it
)

// window are the messages to a peer in their order: from head on those that it may not have, up to sent those that are
// on their way, up to tail the others. When the peer's NIC refuses one, all from it on are sent again, because the
// peer passes by what comes behind a gap: after the last of them has been answered for.
type window struct {
	slots            []slot
	mask             uint64
	head, sent, tail uint64
	inflight         int // events to come
	refused          bool
	mode             sending
	backoff          time.Duration
	retryAt          time.Time
}

// Times between attempts.
const (
	firstBackoff = 10 * time.Microsecond
	lastBackoff  = time.Millisecond
)

// spare is the number of places that only control messages take.
const spare = 4

func (w *window) init(depth int) {
	w.slots, w.mask = make([]slot, depth), uint64(depth-1)
}

func (w *window) slot(pos uint64) *slot { return &w.slots[pos&w.mask] }

// claim returns the next free place, nil if there is none but keep.
func (w *window) claim(keep int) *slot {
	if int(w.tail-w.head)+keep >= len(w.slots) {
		return nil
	}
	s := w.slot(w.tail)
	s.state, s.bounce, s.memory = slotQueued, -1, nic.Memory{}
	return s
}

// publish takes the message in the place of claim in, and posts what may be posted.
func (e *Endpoint) publish() {
	e.w.tail++
	e.pump()
}

// pump posts what may be posted. The caller has the queue's lock.
func (e *Endpoint) pump() {
	w := &e.w
	if w.mode != flowing || w.refused || !e.ready.Load() {
		return
	}
	for w.sent < w.tail {
		if !e.emit() {
			e.i.notifyLater(e)
			return
		}
	}
}

// emit posts the message at sent. False: there is no room.
func (e *Endpoint) emit() bool {
	q, w := e.q, &e.w
	if !q.room() {
		return false
	}
	s := w.slot(w.sent)
	m := nic.Message{To: e.to, MatchBits: e.high | uint64(s.low), HeaderData: s.header,
		UserPtr: messageCookie(e.index, w.sent)}
	if s.memory.Len == 0 && s.n > 0 {
		if !q.q.Inline(&m, nil, s.data[:s.n]) {
			return false
		}
	} else if !q.q.Put(&nic.Transfer{Message: m, Local: s.memory, Initiator: e.i.addr.id(), EQ: q.events.number}) {
		return false
	}
	s.state = slotPosted
	w.sent++
	w.inflight++
	q.posted.add(1)
	return true
}

// acknowledged takes in what became of the message at a position. The caller has the queue's lock.
func (e *Endpoint) acknowledged(low uint16, code uint32) {
	w := &e.w
	pos := w.head + uint64(low-uint16(w.head))
	if pos >= w.sent || w.slot(pos).state != slotPosted {
		return
	}
	verdict := judge(code)
	if verdict == accepted {
		e.accept(w.slot(pos))
	} else {
		w.slot(pos).state = slotQueued
		w.inflight--
	}
	switch verdict {
	case refused:
		w.refused = true
	case lost:
		w.refused = true
		e.pathLost(code)
	case absent:
		w.refused = true
		e.end(fmt.Errorf("peer %s is not there: %s: %w", e, codeText(code), hw.ErrPeerDead))
	case broken:
		w.refused = true
		e.fail(fmt.Errorf("a message to peer %s: %s: %w", e, codeText(code), hw.ErrPeerDead))
	}
	for w.head < w.sent && w.slot(w.head).state == slotArrived {
		e.drop()
	}
	switch {
	case w.refused && w.inflight == 0:
		e.rewind()
	case w.mode == trying && w.inflight == 0:
		w.mode, w.backoff = flowing, 0
		e.pump()
	}
	if e.failure.Load() != nil {
		e.i.notifyLater(e)
	}
}

// accept takes in that the peer's NIC has the message in a slot.
func (e *Endpoint) accept(s *slot) {
	s.state = slotArrived
	e.w.inflight--
	e.lostSince = 0
	e.hears()
}

// hears notes that the peer is alive. Any thread.
func (e *Endpoint) hears() {
	if !e.heard.Load() {
		e.heard.Store(true)
	}
}

// acceptPlain is acknowledged for a message that the peer's NIC has, while nothing is to be sent again.
// False: it is not so, and nothing is changed. The caller has the queue's lock.
func (e *Endpoint) acceptPlain(low uint16) bool {
	w := &e.w
	pos := w.head + uint64(low-uint16(w.head))
	if w.mode != flowing || w.refused || pos >= w.sent || w.slot(pos).state != slotPosted || e.failure.Load() != nil {
		return false
	}
	e.accept(w.slot(pos))
	for w.head < w.sent && w.slot(w.head).state == slotArrived {
		e.drop()
	}
	return true
}

// drop forgets the message at the head.
func (e *Endpoint) drop() {
	if s := e.w.slot(e.w.head); s.bounce >= 0 {
		e.i.pools.Put(s.bounce)
	}
	e.w.head++
}

// rewind has everything from the first refused message on sent again, after a while.
func (e *Endpoint) rewind() {
	w := &e.w
	w.refused = false
	w.sent = w.head
	for pos := w.head; pos < w.tail; pos++ {
		w.slot(pos).state = slotQueued
	}
	w.mode = waiting
	w.backoff = min(max(2*w.backoff, firstBackoff), lastBackoff)
	w.retryAt = time.Now().Add(w.backoff)
	e.i.notifyLater(e)
}

// resend tries the first message again when its time has come, and returns when to try again; zero: there is nothing to
// send again. The caller has the queue's lock.
func (e *Endpoint) resend(now time.Time) time.Time {
	w := &e.w
	switch {
	case e.failure.Load() != nil || w.mode == trying:
		return time.Time{}
	case w.mode == flowing:
		e.pump()
		if w.sent < w.tail && !w.refused && e.ready.Load() {
			return now
		}
		return time.Time{}
	case now.Before(w.retryAt):
		return w.retryAt
	}
	if w.sent == w.tail { // there was nothing behind what was refused, and that is gone
		w.mode = flowing
		return time.Time{}
	}
	if !e.emit() {
		return now
	}
	w.mode = trying
	return time.Time{}
}

// pathLost notes that the peer's NIC is not reached, and ends the endpoint when that has lasted: CheckPeers asks until
// there is an answer. The caller has the queue's lock.
func (e *Endpoint) pathLost(code uint32) {
	e.suspect.Store(true)
	now := time.Now().UnixNano()
	if e.lostSince == 0 {
		e.lostSince = now
	}
	if d := time.Duration(now - e.lostSince); d >= e.i.cfg.PathTimeout {
		e.end(fmt.Errorf("peer %s is not reached for %v: %s: %w", e, d.Round(time.Millisecond), codeText(code),
			hw.ErrPeerDead))
	}
}

// cancel drops all messages of an endpoint that has failed, none of which is on its way. The caller has the queue's
// lock.
func (e *Endpoint) cancel() {
	for w := &e.w; w.head < w.tail; {
		e.drop()
		w.sent = max(w.sent, w.head)
	}
}
