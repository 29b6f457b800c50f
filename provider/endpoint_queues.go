package provider

import (
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
)

// queue is what an endpoint does with a completion queue and a counter alike.
type queue interface {
	Attach(*hot.EP) error
	Detach(*hot.EP) error
	AddSource(*cq.Source) error
	RemoveSource(*cq.Source) error
	Waiter() *cq.Waiter
}

// queues lists what is bound, each once.
func (e *Endpoint) queues() []queue {
	list := e.base.bound.queues()
	if q := e.notes.In.Queue; q != nil && !slices.Contains(list, queue(q)) {
		list = append(list, q)
	}
	if c := e.notes.In.Counter; c != nil && !slices.Contains(list, queue(c)) {
		list = append(list, c)
	}
	return list
}

func (e *bindings) queues() []queue {
	var list []queue
	if e.txCQ != nil {
		list = append(list, e.txCQ)
	}
	if e.rxCQ != nil && e.rxCQ != e.txCQ {
		list = append(list, e.rxCQ)
	}
	seen := map[*cq.Counter]bool{nil: true}
	for _, d := range e.directions() {
		if c := d.counter.Load(); !seen[c] {
			seen[c] = true
			list = append(list, c)
		}
	}
	return list
}

// slept reports whether threads may sleep on one of a list of queues.
func slept(list []queue) bool {
	return slices.ContainsFunc(list, func(q queue) bool { return q.Waiter().Waitable() })
}

// polled reports whether all that comes to the endpoint is polled for: no thread sleeps until it comes, on its queues,
// on counters of deferred work and of regions, on those of other contexts (Scalable.join), or on another endpoint's
// that shares its receive context.
func (e *Endpoint) polled() bool {
	return !e.base.domain.threaded() && !slept(e.queues()) && e.base.conn == nil && e.base.bound.srx == nil &&
		!e.base.chosen.silent && !e.base.chosen.lossy && e.base.info.Caps&(fi.Trigger|fi.RMAEvent) == 0
}

// exclusive reports whether one thread at a time uses the endpoint: as Domain.exclusiveTo says, but not where threads
// that have only a shared receive context in common, or read other contexts' queues (Scalable.join), make progress of
// it.
func (e *peering) exclusive() bool {
	alone := e.bound.srx == nil && !e.chosen.silent
	return e.domain.exclusiveTo(e.info.Caps) && (alone || e.domain.exclusiveShared())
}

// attachQueues makes readers of the queues poll this endpoint, and threads that
// sleep on them listen to its doorbell.
func (e *Endpoint) attachQueues() error {
	undo, av := &e.base.bound.undo, e.base.bound.av
	undo.calls = append(undo.calls,
		av.Subscribe(e.base.dropAddress), av.OnInsert(func() { forgetStrangers(&e.base.peering) }))
	if e.base.rx.owner != nil {
		undo.calls = append(undo.calls, av.OnInsert(func() { e.base.rx.inserted(e) }))
	}
	if e.base.domain.automatic() || slept(e.queues()) {
		if err := e.base.transports.iface.EnableWait(); err != nil {
			return fi.ErrnoOf(err)
		}
	}
	e.base.source = e.base.newSource()
	for _, q := range e.queues() {
		if err := q.Attach(e.base.hot); err != nil {
			return err
		}
		e.base.bound.attached = append(e.base.bound.attached, q)
		if err := q.AddSource(e.base.source); err != nil {
			return err
		}
	}
	return nil
}

// newSource returns the endpoint as sleepers see it now: with a doorbell if it has one.
func (e *peering) newSource() *cq.Source {
	rx, iface := e.rx, e.transports.iface // not e's: they are called while it is closed
	var timers func()
	if !e.domain.threaded() && rx.owner == nil {
		timers = rx.tick
	}
	return &cq.Source{
		Timers:    timers,
		FD:        iface.DoorbellFD(),
		Arm:       func() { iface.Disarm(); iface.Arm(); rx.hot.Sleeps() }, // a source's Arm drains
		Disarm:    iface.Disarm,
		HasWork:   func() bool { return iface.Pending() || dataplane.PostsAreWork(rx.hot) },
		Attention: func() bool { return atomic.LoadUint32(&rx.hot.Attention) != 0 },
		Progress:  rx.advanceAll,
	}
}

func (e *peering) detachQueues() {
	for _, q := range e.bound.attached {
		e.detach(q)
	}
	e.bound.attached = nil
}

// detach takes the endpoint out of a queue to which it is attached.
func (e *peering) detach(q queue) {
	var bell *cq.Source
	e.domain.drives.Do(func() { bell = e.bell })
	_ = q.RemoveSource(e.source) // an error says that it was not added
	if bell != nil {
		_ = q.RemoveSource(bell)
	}
	_ = q.Detach(e.hot)
}
