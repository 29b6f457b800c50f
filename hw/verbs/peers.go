package verbs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
)

// How long the lease holder waits for what cannot be seen to have ended.
const (
	// restTime is how long a stopped queue pair is kept after the last
	// arrival: completions of messages that the device has taken may still come.
	restTime = 20 * time.Millisecond
	// lastWords is how long messages that a closing peer has counted in its bye are
	// waited for.
	lastWords = time.Second
)

// upkeep does what is rare: broken connections, new ones, peers that are gone.
// The caller holds the progress lease.
func (i *Iface) upkeep() {
	if i.signalsDue.Swap(false) {
		for _, e := range *i.peers.Load() {
			if e != nil {
				e.signalAll()
			}
		}
	}
	if !i.anyTodo.Load() {
		return
	}
	i.rx.empty = i.rx.drained()
	now := time.Now()
	for _, e := range i.takeTodo() {
		if !e.step(now) {
			i.notifyLater(e)
		}
	}
}

// notifyLater keeps an endpoint on the list without waking a thread.
func (i *Iface) notifyLater(e *Endpoint) {
	i.todoMu.Lock()
	defer i.todoMu.Unlock()
	if !e.listed {
		e.listed = true
		i.todo = append(i.todo, e)
		i.anyTodo.Store(true)
		i.notifyPoll()
	}
}

// signalAll posts what waited for room, and has everything posted
// signaled. The thread that starts a stopped queue asks for it again.
func (e *Endpoint) signalAll() {
	for _, q := range []*queue{&e.msg, e.mem.started()} {
		if q == nil || q.quiet() || e.failure.Load() != nil || q.Run.Load() == transport.QueueStopped {
			continue
		}
		if !q.Post() && q.Broken.Load() == 0 {
			continue // no room in the completion queue: again with the next Progress
		}
		if !q.signaled() {
			q.postNothing(0, true)
		}
	}
}

// step does the next thing for an endpoint and reports whether nothing is left
// to do for now.
func (e *Endpoint) step(now time.Time) bool {
	l := &e.lease
	if e.failure.Load() != nil && l.phase < dead {
		if !e.outcomeKnown(now) {
			return false
		}
		e.die(now)
	}
	if l.phase == working && (e.msg.Broken.Load() != 0 || e.wantRejoin.Load()) {
		e.breakMessages()
	}
	e.destroyZombies(now)
	switch l.phase {
	case draining:
		if !e.i.rx.empty || e.written() || now.Sub(l.since) < restTime {
			return false
		}
		e.renew()
	case rejoining:
		if at := e.rejoinedAt.Swap(0); at != 0 {
			e.resume(uint32(at))
		}
	case dead:
		e.giveEvents(now)
	}
	if l.phase == working && e.owesWindow.Load() && e.ready.Load() {
		e.sendWindow()
	}
	return len(l.zombies) == 0 && l.phase != draining && l.phase != dead && !e.owesWindow.Load()
}

// breakMessages stops the message queue: its connection is broken, or the peer
// says that it is.
func (e *Endpoint) breakMessages() {
	if e.lease.phase == rejoining || e.lease.phase == draining || e.lease.phase >= dead {
		return
	}
	e.wantRejoin.Store(true)
	e.msg.stop()
	e.retire(e.msg.qp)
	e.msg.Gen++ // completions that are under way no longer count
	e.lease.phase, e.lease.since = draining, time.Now()
	e.i.notify(e)
}

// retire stops a queue pair and keeps it for a while.
func (e *Endpoint) retire(qp *ibv.QP) {
	if err := qp.ToError(); err != nil {
		e.i.logf("peer %s: %v", e, err)
	}
	e.lease.zombies = append(e.lease.zombies, zombie{qp, time.Now()})
}

// destroyZombies destroys queue pairs that have rested.
func (e *Endpoint) destroyZombies(now time.Time) {
	e.lease.zombies = slices.DeleteFunc(e.lease.zombies, func(z zombie) bool {
		if !e.i.rx.empty || now.Sub(z.since) < restTime {
			return false
		}
		if err := z.qp.Close(); err != nil {
			e.i.logf("peer %s: %v", e, err)
		}
		return true
	})
}

// renew gives the message queue another queue pair. What the former one has
// received has been read.
func (e *Endpoint) renew() {
	if err := e.newMessageQP(); err != nil {
		e.fail(e.lost(fmt.Errorf("connect to peer %s again: %w", e, err)))
		return
	}
	e.lease.phase, e.lease.since = rejoining, time.Now()
	e.clearRing()
	qp, seq, taken := e.msg.qp, e.c.LastSeq, e.c.Taken()
	e.i.svc.do(func() { e.i.svc.rejoin(e, qp, seq, taken) })
}

// resume goes on over the new connection, behind what the peer has.
func (e *Endpoint) resume(peerHas uint32) {
	q := &e.msg
	head := q.Head.Load()
	end := head + uint64(int64(int32(peerHas-uint32(head))))
	if end > q.Posted { // what was not sent cannot have arrived
		e.fail(fmt.Errorf("peer %s claims %d messages that were not sent: %w", e, end-q.Posted, hw.ErrPeerDead))
		return
	}
	q.Part() // the peer may have some of the messages in a packet; the former queue pair reads them no more
	if end > head {
		e.endUpTo(q, end, q.Posted, 0, nil)
	}
	q.rewind()
	q.UseRing(e.ringFor(e.hello.peerRing))
	e.lease.phase = working
	e.lease.active = time.Now()
	q.start()
	e.i.wantSignals()
	e.i.logf("peer %s: the path is back", e)
}

// outcomeKnown reports whether it is known what the peer did before it ended: its last message is delivered,
// for there may be an answer in it, and the device has completed the operations on its memory, or has had the
// time to.
func (e *Endpoint) outcomeKnown(now time.Time) bool {
	l := &e.lease
	if l.failed.IsZero() {
		l.failed = now // what has come until now is polled before the next step
		return false
	}
	if e.expecting(now) || !e.i.rx.empty || e.written() {
		return false
	}
	q := e.mem.started()
	return q == nil || q.quiet() || now.Sub(l.failed) >= restTime
}

// expecting reports whether messages that a closing peer has counted in its bye are still to come.
func (e *Endpoint) expecting(now time.Time) bool {
	bye := e.byeSeq.Load()
	return bye != 0 && int32(uint32(bye)-e.c.LastSeq) > 0 && now.Sub(e.lease.failed) < lastWords
}

// die ends everything that waits for the peer.
func (e *Endpoint) die(now time.Time) {
	err := fmt.Errorf("%w: %w", e.Err(), hw.ErrPeerDead)
	old := e.lease.phase
	e.msg.stop()
	if old == working || old == rejoining {
		e.retire(e.msg.qp)
	}
	e.msg.Gen++
	e.endQueue(&e.msg, err)
	e.memoryDied(err)
	e.i.svc.do(func() { e.i.svc.part(e) })
	e.lease.phase, e.lease.since = dead, now
}

// endQueue ends everything in a stopped queue, for good.
func (e *Endpoint) endQueue(q *queue, err error) {
	q.close()
	e.endUpTo(q, q.End(), q.Posted, 0, err)
	q.rewind()
}

// giveEvents reports that the peer is gone when its last message is delivered: there may be
// an answer in it. Then it is forgotten.
func (e *Endpoint) giveEvents(now time.Time) {
	l := &e.lease
	i := e.i
	if e.expecting(now) || i.rx.fresh || !i.rx.empty || e.written() {
		return
	}
	if l.connected.Load() && !l.eventGiven {
		l.eventGiven = true
		i.rx.lost.Add(1)
		i.rx.onPeer(hw.PeerEvent{Endpoint: e, Err: e.gone()})
		e.reported.Store(true)
	}
	if len(l.zombies) > 0 {
		return
	}
	l.phase = reclaimed
	e.reported.Store(true) // for callers that have connected meanwhile
	bye := e.byeSeq.Load()
	if e.c.Source != 0 {
		i.rx.lost.Add(1)
		i.rx.onPeer(hw.PeerEvent{Source: hw.Source(e.index), HasSource: true, Closed: bye != 0, Err: e.gone()})
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, name := range append(e.asked, e.Address()) {
		i.cfg.Forget(name)
	}
	list := slices.Clone(*i.peers.Load())
	list[e.index] = nil
	i.peers.Store(&list)
	i.rx.transport.SetPeer(e.index, nil)
	if err := e.dropRing(); err != nil {
		i.logf("peer %s: %v", e, err)
	}
	delete(i.byKey, e.key)
	i.gone.add(e.key, i.waits(e)) // a bye may have come since the event
}

// againAfter is when a peer to which the path was lost is connected to again at the earliest; before, it is reached
// otherwise, if that is possible.
const againAfter = time.Second

// waits is until when a peer that is gone is not connected to, zero: for ever, because it has closed. The caller has
// i.mu.
func (i *Iface) waits(e *Endpoint) time.Time {
	switch {
	case e.byeSeq.Load() != 0:
		return time.Time{}
	case e.ready.Load():
		return time.Now().Add(againAfter)
	}
	return time.Now().Add(i.cfg.ConnectTimeout) // it has never answered: the network may not lead to it
}

// gone is the endpoint's error as an event carries it.
func (e *Endpoint) gone() error {
	err := e.Err()
	if errors.Is(err, hw.ErrPeerDead) {
		return err
	}
	return fmt.Errorf("%w: %w", err, hw.ErrPeerDead)
}

// bye remembers that a peer has closed after it sent message seq. Its endpoint may have failed before; there may be
// none (nil), as the peer was lost. Of a peer that was never here nothing is remembered. Service; the caller has i.mu.
func (i *Iface) bye(e *Endpoint, key [addressBytes]byte, seq uint32) {
	if e != nil {
		e.byeSeq.Store(uint64(seq) | 1<<32)
	} else if i.gone.known(key) {
		i.gone.add(key, time.Time{})
	}
}

// part forgets an endpoint that is dead. Service.
func (s *service) part(e *Endpoint) {
	delete(s.active, e)
	if e.passive.qp != nil {
		if err := e.passive.qp.Close(); err != nil {
			s.i.logf("peer %s: %v", e, err)
		}
		e.passive.qp = nil
	}
}

// SourceAddress is the address of a remote interface that sent to us.
func (i *Iface) SourceAddress(src hw.Source) []byte {
	if list := *i.peers.Load(); int(src) < len(list) && list[src] != nil {
		return list[src].Address()
	}
	return nil
}

// SourceReaches reports whether a Connect to address would reach the source.
func (i *Iface) SourceReaches(src hw.Source, name []byte) bool {
	list := *i.peers.Load()
	if int(src) >= len(list) || list[src] == nil {
		return false
	}
	e := list[src]
	if bytes.Equal(e.Address(), name) {
		return true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.ContainsFunc(e.asked, func(n []byte) bool { return bytes.Equal(n, name) })
}
