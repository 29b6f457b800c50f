package provider

import (
	"runtime"
	"time"
)

// Rx is the endpoint's receive context, nil before Enable.
func (e *Endpoint) Rx() *RxContext { return e.base.rx }

// SharesRx reports whether the endpoint's receive context is a shared one.
func (e *Endpoint) SharesRx() bool { return e.base.bound.srx != nil }

// attach adds an endpoint that delivers into the context.
func (r *rxContext) attach(e *leasedEP) { r.acquire().attach(e) }

func (r *leasedRx) attach(e *leasedEP) {
	defer r.give()
	r.matching.Attach(&e.received)
	e.ep.base.hot.Number = e.received.Number()
	r.eps = append(r.eps, e)
	e.rendezvous.Attach(&r.rendezvous, e.received.Number())
	if r.base.owner != nil && e.ep.base.bound.av.Shared() {
		r.base.hot.Rest = 0 // reportInsertions comes as often as timers run
	}
	r.base.sleepers.add(&e.ep)
	r.base.stats.Store(r.eps[0].ep.base.stats)
	if r.av == nil {
		r.name(e.ep.base.bound.av)
	}
}

// flushTime bounds how long closing an endpoint waits for room in its peers'
// rings, for acknowledgements that they wait for, and for each piece of the results.
const flushTime = time.Second

// disable takes an enabled endpoint out of service.
func (e *Endpoint) disable() {
	e.base.setFast(false)
	enabled.Remove(e)
	e.stopBackground()
	e.base.domain.drives.Part(e)
	if e.base.scalable != nil {
		e.base.scalable.leave(e)
	}
	e.base.detachQueues()
	r := e.base.rx.acquire()
	l := e.leased.Of(r)
	r.flushOut(l)
	r.detach(l)
	e.base.table.Hide()
	r.give()
	e.endLists() // again: the last elements of a device may have entered some
	e.release()
}

// flushOut sends what waits for room, as far as peers make it in time.
func (r *receiving) flushOut(e *leasedEP) {
	end, owed := time.Now().Add(flushTime), e.target.Owed()
	for r.waits(e) && time.Now().Before(end) {
		if r.base.ends.Load() {
			r.checkPeers() // messages to peers that are gone are dropped
		}
		r.out.Flush()
		e.target.Reply()
		for _, p := range e.ep.base.links.Transports() {
			if p.Network != nil {
				p.Progress(0) // what peers have acknowledged makes room; nothing is delivered
			}
		}
		if n := e.target.Owed(); n < owed {
			end, owed = time.Now().Add(flushTime), n
		}
		runtime.Gosched()
	}
}

// waits reports whether messages of the endpoint, or what it owes of reads and atomics, wait for room.
func (r *receiving) waits(e *leasedEP) bool {
	if e.target.Replying() {
		return true
	}
	for to := range r.out.Destinations() {
		if to.ep == e {
			return true
		}
	}
	return false
}

// detach removes an endpoint and what is in flight for it.
func (r *leasedRx) detach(e *leasedEP) {
	r.out.Drop(func(to *destination) bool { return to.ep == e })
	for i := range r.eps {
		if r.eps[i] == e {
			r.eps = append(r.eps[:i], r.eps[i+1:]...)
			break
		}
	}
	r.matching.Detach(&e.received)
	e.rendezvous.Detach()
	e.initiated.Abandon()
	r.base.sleepers.remove(&e.ep)
	r.base.stats.Store(nil)
	if len(r.eps) != 0 {
		r.base.stats.Store(r.eps[0].ep.base.stats)
	}
	r.ids.Leave(func(o origin) bool { return o.ep == &e.ep })
	if r.av == e.ep.base.bound.av {
		r.name(nil)
		for _, other := range r.eps {
			r.name(other.ep.base.bound.av)
			break
		}
	}
	r.publish()
}
