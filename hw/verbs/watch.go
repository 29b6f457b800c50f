package verbs

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
)

// CheckPeers finds peers that are gone. The caller holds the progress lease.
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
		if e.c.Heard != 0 {
			e.c.Heard, e.lease.active = 0, now
		}
		e.watch(now)
		if e.lease.phase == working && now.Sub(e.lease.active) >= i.cfg.KeepAlive && e.ready.Load() {
			e.lease.active = now
			e.try()
		}
	}
	i.upkeep()
}

// watch finds queues in which nothing moves: a device may forget an
// operation when its port goes down, or try a lost one for ever.
func (e *Endpoint) watch(now time.Time) {
	l := &e.lease
	if e.msg.Broken.Load() != 0 {
		e.i.notify(e)
	}
	limit := e.i.cfg.PathTimeout / 2
	if l.phase == working && l.stuck[classMessage].check(&e.msg, now, limit) {
		e.i.logf("peer %s: nothing moves for %v", e, limit)
		e.breakMessages()
	}
	q := e.mem.started()
	if q != nil && e.mem.state.Load() == memoryReady && l.phase < dead &&
		(q.Broken.Load() != 0 || l.stuck[classMemory].check(q, now, limit)) {
		e.i.logf("peer %s: no one-sided operation moves for %v", e, limit)
		e.memoryBroken(q, q.Head.Load(), fmt.Errorf("verbs: %w", hw.ErrPeerDead))
	}
}

// stuck remembers when a queue last moved.
type stuck struct {
	head  uint64
	since time.Time
}

// check reports whether a queue has had a signaled operation posted
// and has not moved for limit. Where none is signaled it posts one, so
// that an idle queue is not taken for a broken one.
func (s *stuck) check(q *queue, now time.Time, limit time.Duration) bool {
	head := q.Head.Load()
	if q.quiet() || head != s.head || s.since.IsZero() {
		s.head, s.since = head, now
		return false
	}
	if q.LastSignal.Load() <= head {
		q.postNothing(0, true)
		s.since = now
		return false
	}
	if now.Sub(s.since) < limit {
		return false
	}
	s.since = now
	return true
}

// try posts something whose completion reports whether the peer lives.
func (e *Endpoint) try() {
	q := &e.msg
	if q.Run.Load() != transport.QueueStopped && q.LastSignal.Load() <= q.Head.Load() {
		q.postNothing(0, true)
	}
}

// Check asks whether the peer is alive.
func (e *Endpoint) Check() error {
	if err := e.usable(); err != nil {
		if errors.Is(err, hw.ErrNoResource) { // connecting: the answer will show it
			return nil
		}
		return err
	}
	e.try()
	return nil
}
