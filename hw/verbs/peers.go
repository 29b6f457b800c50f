package verbs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/ibv"
)

// How long the lease holder waits for what cannot be seen to have ended.
const (
	// restTime is how long a stopped queue pair is kept after the last
	// arrival: the device may still be telling of messages it has taken.
	restTime = 20 * time.Millisecond
	// lastWords is how long messages that a closing peer has announced are
	// waited for.
	lastWords = time.Second
)

// upkeep does what is rare: broken connections, new ones, peers that are gone.
// The caller holds the progress lease.
func (i *Iface) upkeep() {
	if i.nudge.Swap(false) {
		for _, e := range *i.peers.Load() {
			if e != nil {
				e.tellAll()
			}
		}
	}
	if !i.anyTodo.Load() {
		return
	}
	now := time.Now()
	for _, e := range i.takeTodo() {
		if !e.step(now) {
			i.attendLater(e)
		}
	}
}

// attendLater keeps an endpoint on the list without waking anybody.
func (i *Iface) attendLater(e *Endpoint) {
	i.todoMu.Lock()
	defer i.todoMu.Unlock()
	if !e.listed {
		e.listed = true
		i.todo = append(i.todo, e)
		i.anyTodo.Store(true)
	}
}

// tellAll posts what waited for room, and has the completions of everything
// posted told.
func (e *Endpoint) tellAll() {
	for _, q := range []*queue{&e.msg, e.mem.started()} {
		if q == nil || q.quiet() || e.failure.Load() != nil {
			continue
		}
		q.post()
		if !q.told() {
			q.postNothing(0, true, entryControl)
		}
	}
}

// step does the next thing for an endpoint and tells whether nothing is left
// to do for now.
func (e *Endpoint) step(now time.Time) bool {
	l := &e.lease
	if e.failure.Load() != nil && l.phase < dead {
		e.die(now)
	}
	if l.phase == working && (e.msg.broken.Load() || e.wantRejoin.Load()) {
		e.breakMessages()
	}
	e.destroyZombies(now)
	e.retryLoops()
	e.sendReplies()
	switch l.phase {
	case draining:
		if !e.i.rx.drained() || now.Sub(l.since) < restTime {
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
		e.tellWindow()
	}
	return len(l.zombies)+len(l.replies)+len(e.mem.stalled) == 0 && l.phase != draining && l.phase != dead && !e.owesWindow.Load()
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
	e.msg.gen++ // completions that are under way no longer count
	e.lease.phase, e.lease.since = draining, time.Now()
	e.i.attend(e)
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
		if !e.i.rx.drained() || now.Sub(z.since) < restTime {
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
		e.fail(fmt.Errorf("connect to peer %s again: %w: %w", e, err, hw.ErrPeerDead))
		return
	}
	e.lease.phase, e.lease.since = rejoining, time.Now()
	qp, seq := e.msg.qp, e.lease.lastSeq
	e.i.svc.do(func() { e.i.svc.rejoin(e, qp, seq) })
}

// resume goes on over the new connection, behind what the peer has.
func (e *Endpoint) resume(peerHas uint32) {
	q := &e.msg
	head := q.head.Load()
	end := head + uint64(int64(int32(peerHas-uint32(head))))
	if end > q.posted { // nobody has what was not sent
		e.fail(fmt.Errorf("peer %s claims %d messages that were not sent: %w", e, end-q.posted, hw.ErrPeerDead))
		return
	}
	if end > head {
		e.finish(q, end, q.posted, nil)
	}
	q.rewind()
	e.lease.phase = working
	e.lease.active = time.Now()
	q.start()
	e.i.logf("peer %s: the path is back", e)
}

// die ends everything that waits for the peer.
func (e *Endpoint) die(now time.Time) {
	err := fmt.Errorf("%w: %w", e.Err(), hw.ErrPeerDead)
	old := e.lease.phase
	e.msg.stop()
	if old == working || old == rejoining {
		e.retire(e.msg.qp)
	}
	e.msg.gen++
	e.endQueue(&e.msg, err)
	e.memoryDied(err)
	e.retryLoops()
	e.endAsks(err)
	e.lease.replies = nil
	e.i.svc.do(func() { e.i.svc.part(e) })
	e.lease.phase, e.lease.since = dead, now
}

// endQueue ends everything in a stopped queue, for good.
func (e *Endpoint) endQueue(q *queue, err error) {
	q.close()
	e.finish(q, q.end(), q.posted, err)
	q.rewind()
}

// giveEvents tells that the peer is gone, as the end of its path at once, and
// as a source after its last message. Then it is forgotten.
func (e *Endpoint) giveEvents(now time.Time) {
	l := &e.lease
	i := e.i
	if l.connected.Load() && !l.told {
		l.told = true
		i.rx.lost.Add(1)
		i.rx.onPeer(hw.PeerEvent{Endpoint: e, Err: e.gone()})
	}
	bye := e.byeSeq.Load()
	awaited := bye != 0 && int32(uint32(bye)-l.lastSeq) > 0 && now.Sub(l.since) < lastWords
	if awaited || i.rx.fresh || !i.rx.drained() || len(l.zombies) > 0 {
		return
	}
	l.phase = buried
	if l.hasSource {
		i.rx.lost.Add(1)
		i.rx.onPeer(hw.PeerEvent{Source: hw.Source(e.index), HasSource: true, Closed: bye != 0, Err: e.gone()})
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if e.ours == 0 {
		for _, name := range append(e.asked, e.Address()) {
			i.cfg.Forget(name)
		}
	}
	list := slices.Clone(*i.peers.Load())
	list[e.index] = nil
	i.peers.Store(&list)
	if e.ours != 0 {
		delete(i.halves, e.ours)
		return
	}
	delete(i.byKey, e.key)
	i.gone.add(e.key)
}

// gone is the endpoint's error as an event tells it.
func (e *Endpoint) gone() error {
	err := e.Err()
	if errors.Is(err, hw.ErrPeerDead) {
		return err
	}
	return fmt.Errorf("%w: %w", err, hw.ErrPeerDead)
}

// bye ends an endpoint whose peer closes. Service.
func (e *Endpoint) bye(seq uint32) {
	e.byeSeq.Store(uint64(seq) | 1<<32)
	e.end(fmt.Errorf("peer %s has closed its interface: %w", e, hw.ErrPeerDead))
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

// SetEagerWindow tells senders whether eager payloads are welcome. Any thread.
func (i *Iface) SetEagerWindow(open bool) {
	var v uint32
	if !open {
		v = 1
	}
	if i.closed.Load() || i.window.Swap(v) == v {
		return
	}
	for _, e := range *i.peers.Load() {
		if e != nil && e.joins() {
			e.owesWindow.Store(true)
			if e.ready.Load() && e.run() {
				e.tellWindow()
			}
			if e.owesWindow.Load() {
				i.attend(e)
			}
		}
	}
}

// run tells whether messages are being posted.
func (e *Endpoint) run() bool { return e.msg.run.Load() != stopped }

// tellWindow sends the peer our window as immediate data, which wakes it if it
// sleeps and needs no key to its memory.
func (e *Endpoint) tellWindow() {
	e.owesWindow.Store(false)
	imm := e.peerIndex.Load()<<immBits | immOpen
	if e.i.window.Load() != 0 {
		imm = e.peerIndex.Load()<<immBits | immClosed
	}
	if _, ok := e.msg.postNothing(imm, false, entryControl); !ok {
		e.owesWindow.Store(true)
	}
}

// CheckPeers looks for peers that are gone. The caller holds the progress lease.
func (i *Iface) CheckPeers() {
	if i.closed.Load() {
		return
	}
	i.rx.fresh = false
	i.rx.poll()
	i.rx.complete()
	now := time.Now()
	for _, e := range *i.peers.Load() {
		if e == nil {
			continue
		}
		if e.lease.heard {
			e.lease.heard, e.lease.active = false, now
		}
		e.watch(now)
		if e.lease.phase == working && now.Sub(e.lease.active) >= i.cfg.KeepAlive && e.ready.Load() {
			e.lease.active = now
			e.try()
		}
	}
	i.upkeep()
}

// watch looks for queues in which nothing moves: a device may forget an
// operation when its port goes down, or try a lost one for ever.
func (e *Endpoint) watch(now time.Time) {
	l := &e.lease
	if e.msg.broken.Load() {
		e.i.attend(e)
	}
	limit := e.i.cfg.PathTimeout / 2
	if l.phase == working && l.stuck[classMessage].check(&e.msg, now, limit) {
		e.i.logf("peer %s: nothing moves for %v", e, limit)
		e.breakMessages()
	}
	q := e.mem.started()
	if q != nil && e.mem.state.Load() == memoryReady && l.phase < dead && (q.broken.Load() || l.stuck[classMemory].check(q, now, limit)) {
		e.i.logf("peer %s: no one-sided operation moves for %v", e, limit)
		e.memoryBroken(q, q.head.Load(), fmt.Errorf("verbs: %w", hw.ErrPeerDead))
	}
}

// stuck remembers when a queue last moved.
type stuck struct {
	head  uint64
	since time.Time
}

// check tells whether a queue has had something posted whose completion is to be
// told, and has not moved for limit. Where none is to be told it asks for one, so
// that an idle queue is not taken for a broken one.
func (s *stuck) check(q *queue, now time.Time, limit time.Duration) bool {
	head := q.head.Load()
	if q.quiet() || head != s.head || s.since.IsZero() {
		s.head, s.since = head, now
		return false
	}
	if q.lastSignal.Load() <= head {
		q.postNothing(0, true, entryControl)
		s.since = now
		return false
	}
	if now.Sub(s.since) < limit {
		return false
	}
	s.since = now
	return true
}

// try posts something whose completion tells whether the peer lives.
func (e *Endpoint) try() {
	q := &e.msg
	if q.run.Load() != stopped && q.lastSignal.Load() <= q.head.Load() {
		q.postNothing(0, true, entryControl)
	}
}

// Check asks whether the peer is alive.
func (e *Endpoint) Check() error {
	if err := e.usable(); err != nil {
		if errors.Is(err, hw.ErrNoResource) { // connecting: the answer will tell
			return nil
		}
		return err
	}
	e.try()
	return nil
}

// SourceAddress is the address of a remote interface that sent to us.
func (i *Iface) SourceAddress(src hw.Source) []byte {
	if list := *i.peers.Load(); int(src) < len(list) && list[src] != nil {
		return list[src].Address()
	}
	return nil
}

// SourceReaches tells whether a Connect to address would reach the source.
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

// closeWait bounds how long Close waits for what was posted to arrive.
const closeWait = 200 * time.Millisecond

// Close tells the peers and gives everything back. What was posted gets a fifth
// of a second to arrive. The caller has stopped all threads that use the
// interface.
func (i *Iface) Close() error {
	if i.closed.Load() {
		return nil
	}
	i.drain()
	if i.closed.Swap(true) {
		return nil
	}
	i.svc.do(i.svc.farewell)
	i.svc.stop()
	i.d.remove(i)
	canceled := fmt.Errorf("verbs: interface closed: %w", hw.ErrCanceled)
	i.cancelFlushes(canceled)
	var errs []error
	for _, e := range *i.peers.Load() {
		if e != nil {
			errs = append(errs, e.discard(canceled))
		}
	}
	return errors.Join(append(errs, i.release())...)
}

// drain waits until all peers have what was posted to them.
func (i *Iface) drain() {
	for end := time.Now().Add(closeWait); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		quiet := true
		for _, e := range *i.peers.Load() {
			if e != nil && e.failure.Load() == nil && !e.msg.quiet() {
				quiet = false
				e.tellAll()
			}
		}
		if quiet {
			return
		}
		i.rx.poll()
		i.rx.complete()
		if len(i.rx.arrivals) > 0 { // nobody will handle them; make room for completions
			i.rx.staged.Add(-int64(len(i.rx.arrivals)))
			for _, d := range i.rx.arrivals {
				i.rx.free = append(i.rx.free, uint32(d.ID))
			}
			i.rx.arrivals = nil
		}
	}
}

// discard frees an endpoint's queue pairs when the interface closes; the
// service has ended.
func (e *Endpoint) discard(err error) error {
	var errs []error
	if e.failure.CompareAndSwap(nil, &err) {
		e.answer()
	}
	if e.lease.phase < dead {
		if e.lease.phase != draining {
			errs = append(errs, e.msg.qp.Close())
		}
		e.msg.stop()
		e.endQueue(&e.msg, err)
		errs = append(errs, e.discardMemory(err))
		e.retryLoops()
		e.endAsks(err)
	}
	for _, z := range e.lease.zombies {
		errs = append(errs, z.qp.Close())
	}
	if e.passive.qp != nil {
		errs = append(errs, e.passive.qp.Close())
	}
	return errors.Join(errs...)
}

// farewell tells all peers that the interface closes, and waits until the
// device has sent it. Service.
func (s *service) farewell() {
	for _, e := range *s.i.peers.Load() {
		if e != nil && e.Err() == nil && e.hello.applied != 0 {
			s.tell(e, &packet{kind: packetBye, seq: uint32(e.msg.lastSend.Load())})
		}
	}
	for end := time.Now().Add(closeWait); len(s.free) < serviceSend && time.Now().Before(end); {
		if s.takeCompletions() == 0 {
			time.Sleep(50 * time.Microsecond)
		}
	}
}
