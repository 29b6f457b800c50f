package cxi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// ask asks the peer's NIC whether the interface is there, unless a question is on its way. The caller has the queue's
// lock.
func (e *Endpoint) ask() {
	if e.asked.Load() {
		return
	}
	q := e.q
	o, n := q.begin(e, opPresence)
	if o == nil {
		return
	}
	t := nic.Transfer{
		Message:   nic.Message{To: e.addr.at(indexPresence), MatchBits: e.addr.nonce, UserPtr: cookieOp | uint64(n)},
		Initiator: e.i.addr.id(), EQ: q.events.number,
	}
	if q.q.Put(&t) {
		e.asked.Store(true)
		q.commit(o, n)
	}
}

// present takes in the answer of the peer's NIC. The caller has the queue's lock.
func (e *Endpoint) present(code uint32) {
	asked := e.confirmed == confirmAsked
	if asked {
		e.confirmed = confirmNone
	}
	switch v := judge(code); {
	case v == accepted:
		if asked {
			e.confirmed = confirmYes
		}
		e.lostSince = 0
		e.isThere()
		e.greet()
	case v == lost, v == refused && code != wire.RcEntryNotFound:
		e.pathLost(code)
	default: // no entry: another interface has its place
		e.end(fmt.Errorf("peer %s is not there: %s: %w", e, codeText(code), hw.ErrPeerDead))
	}
}

// isThere lets messages be posted, unless those of an endpoint before may still arrive. Any thread.
func (e *Endpoint) isThere() {
	if e.before.Load() == nil {
		e.ready.Store(true)
	}
}

// welcome is isThere for a peer that has sent first: it gets word that the window is closed, if it is; else our first
// message says it. Lease.
func (e *Endpoint) welcome() {
	e.isThere()
	if e.i.window.Load() != 0 {
		e.owesWindow.Store(true)
		e.i.notifyLater(e)
	}
}

// succeed lets the endpoint that has taken this one's place post. Lease; the caller has i.mu.
func (e *Endpoint) succeed() {
	next := e.i.ids.Load().find(e.addr.id())
	if next == nil || next.before.Load() != e {
		return
	}
	next.before.Store(e.before.Load())
	next.welcome()
}

// upkeep does what is rare: messages to be sent again, windows, peers that are gone. Lease.
func (i *Iface) upkeep() {
	now := time.Now()
	for _, e := range i.takeTodo() {
		if !e.step(now) {
			i.notifyLater(e)
		}
	}
}

// step does the next thing for an endpoint and reports whether nothing is left
// to do for now. Lease.
func (e *Endpoint) step(now time.Time) bool {
	if e.lease.reclaimed {
		return true
	}
	if e.failure.Load() != nil {
		return e.die(now)
	}
	e.q.take()
	if e.owesWindow.Load() && e.ready.Load() {
		e.owesWindow.Store(false)
		if !e.control(kindWindow, uint64(e.i.window.Load()), nil) {
			e.owesWindow.Store(true)
		}
	}
	again := e.resend(now)
	e.q.give()
	return again.IsZero() && !e.owesWindow.Load()
}

// die ends everything that waits for the peer, when the NIC has answered for all that was posted, and reports that it
// is gone when its last message is delivered: there may be an answer in it. The endpoint is kept until the peer has
// been reported, or cannot be. Lease.
func (e *Endpoint) die(now time.Time) bool {
	l := &e.lease
	first := !l.failed
	if first {
		l.failed = true
		e.i.rx.empty = false // what has come until now comes before it
	}
	e.q.take()
	if first && e.ready.Load() && !l.closed {
		e.word.until = now.Add(e.i.cfg.PathTimeout)
	}
	e.reset(now)
	if e.q.overdue(now) {
		e.q.abandon(e, e.gone())
	}
	quiet := e.w.inflight == 0 && e.ops.count == 0
	if quiet {
		e.cancel()
	}
	wordOver := e.word.until.IsZero()
	e.q.give()
	if !l.reported && (!quiet || e.i.rx.fresh || !e.i.rx.empty) {
		return false
	}
	if !l.reported {
		e.i.pollAll() // what was canceled is reported first
		e.giveEvents()
	}
	if !quiet || !wordOver {
		return false
	}
	e.reclaim()
	return true
}

// lastWord is the message after which nothing comes any more. A receiver that is full refuses it, and gets it again.
// Under the queue's lock.
type lastWord struct {
	until   time.Time // not after; zero: there is none, or it is over
	at      time.Time // not before
	backoff time.Duration
	posted  bool // its event is to come
}

// reset sends the peer word that nothing comes any more, past the window. The caller has the queue's lock.
func (e *Endpoint) reset(now time.Time) {
	w := &e.word
	if w.until.IsZero() || w.posted || now.Before(w.at) {
		return
	}
	if now.After(w.until) {
		w.until = time.Time{}
		return
	}
	q := e.q
	o, n := q.begin(e, opReset)
	if o == nil {
		return // there are events to come
	}
	var streams [8]byte
	binary.LittleEndian.PutUint32(streams[:], e.stream)
	binary.LittleEndian.PutUint32(streams[4:], e.lease.stream)
	m := nic.Message{To: e.to, MatchBits: e.high | uint64(lowBits(0, 0, kindReset, 0)), HeaderData: e.i.addr.nonce,
		UserPtr: cookieOp | uint64(n)}
	if q.q.Inline(&m, nil, streams[:]) {
		w.posted = true
		q.commit(o, n)
	}
}

// resetAnswered takes in what became of it. A peer that is gone does not matter. The caller has the queue's lock.
func (e *Endpoint) resetAnswered(code uint32) {
	w := &e.word
	w.posted = false
	switch judge(code) {
	case refused, lost:
		w.backoff = min(max(2*w.backoff, firstBackoff), lastBackoff)
		w.at = time.Now().Add(w.backoff)
	default:
		w.until = time.Time{}
	}
}

// givenUp reports whether the connection that a peer has given up by reset is that of this endpoint, and not one
// before. Lease.
func (e *Endpoint) givenUp(reset []byte) bool {
	if len(reset) != 8 {
		return false
	}
	theirs, ours := binary.LittleEndian.Uint32(reset), binary.LittleEndian.Uint32(reset[4:])
	if ours != 0 {
		return ours == e.stream
	}
	return e.lease.stream == 0 || e.lease.stream == theirs
}

// pollAll reports all that has ended. Lease.
func (i *Iface) pollAll() {
	for _, q := range i.tx {
		q.completeAll()
	}
}

// giveEvents reports that the peer is gone. Lease.
func (e *Endpoint) giveEvents() {
	l, i := &e.lease, e.i
	l.reported = true
	if e.connected.Load() {
		i.rx.lost.Add(1)
		i.rx.onPeer(hw.PeerEvent{Endpoint: e, Err: e.gone()})
	}
	e.reported.Store(true)
	if l.source {
		i.rx.lost.Add(1)
		i.rx.onPeer(hw.PeerEvent{Source: hw.Source(e.index), HasSource: true, Closed: l.closed, Err: e.gone()})
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, name := range append(e.names, e.Address()) {
		i.cfg.Forget(name)
	}
}

// reclaim ends an endpoint of which nothing is on its way. Lease.
func (e *Endpoint) reclaim() {
	i := e.i
	e.lease.reclaimed = true
	e.q.take()
	e.w.slots = nil // the caller of Connect may keep the endpoint for long
	e.q.give()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.rest(e)
	e.succeed()
	list := slices.Clone(*i.peers.Load())
	list[e.index] = nil
	i.peers.Store(&list)
	if i.ids.Load().find(e.addr.id()) == e {
		i.ids.Store(i.ids.Load().without(e))
	}
}

// gone is the endpoint's error as in an event.
func (e *Endpoint) gone() error {
	err := e.Err()
	if errors.Is(err, hw.ErrPeerDead) {
		return err
	}
	return fmt.Errorf("%w: %w", err, hw.ErrPeerDead)
}

// CheckPeers reports peers that are gone. The caller holds the progress lease.
func (i *Iface) CheckPeers() {
	if i.closed.Load() {
		return
	}
	i.rx.fresh = false
	i.rx.empty = !i.rx.events.Peek().There()
	now := time.Now()
	for _, e := range *i.peers.Load() {
		if e == nil || e.failure.Load() != nil {
			continue
		}
		if e.heard.Load() {
			e.heard.Store(false)
			e.lease.active = now
		}
		if e.suspect.Load() || now.Sub(e.lease.active) >= i.cfg.KeepAlive {
			e.suspect.Store(false)
			e.lease.active = now
			e.q.take()
			e.ask()
			e.q.give()
		}
	}
	for _, q := range i.tx {
		q.tryPoll()
		q.completeAll()
	}
	if i.anyTodo.Load() {
		i.upkeep()
	}
}

// Check asks whether the peer is alive.
func (e *Endpoint) Check() error {
	if err := e.Err(); err != nil {
		return err
	}
	e.q.take()
	e.ask()
	e.q.give()
	return nil
}

// confirmation is what is known of a peer since Confirm was called first.
type confirmation uint8

const (
	confirmNone  confirmation = iota // nothing, and it was not asked for
	confirmAsked                     // a question is on its way that was posted for it
	confirmYes                       // the interface is there
)

// Confirm asks the peer's NIC whether the very interface that was connected is there: another that has its address by
// now has another number. nil: it was, since the first call. Errors: hw.ErrNoResource until that is known,
// hw.ErrPeerDead. Any thread.
func (e *Endpoint) Confirm() error {
	if e.Err() != nil {
		return e.gone()
	}
	e.q.take()
	defer e.q.give()
	switch {
	case e.confirmed == confirmYes:
		e.confirmed = confirmNone
		return nil
	case e.confirmed == confirmNone && !e.asked.Load(): // an answer that is to come may be one from before
		if e.ask(); e.asked.Load() {
			e.confirmed = confirmAsked
		}
	}
	return hw.ErrNoResource
}

// SetEagerWindow says to senders whether eager payloads are welcome. Any thread.
func (i *Iface) SetEagerWindow(open bool) {
	var v uint32
	if !open {
		v = 1
	}
	if i.closed.Load() || i.window.Swap(v) == v {
		return
	}
	for _, e := range *i.peers.Load() {
		if e != nil {
			e.owesWindow.Store(true)
			i.notify(e)
		}
	}
}
