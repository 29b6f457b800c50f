package provider

import (
	"runtime"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// RxContext is a receive context as C's callbacks name it: progress is made on
// receive contexts, not endpoints, because a shared one serves several.
type RxContext = rxContext

func (r *rxContext) setHandle(h uint64) {
	r.handle = h
	r.hot.Handle = h
}

// Progress makes progress. The caller holds the lease, or the context needs
// none (C takes it before it calls). It returns whether Triggered is to be called.
func (r *rxContext) Progress() bool {
	r.leased.Taken().progress()
	return r.domain.work.Ready()
}

// Housekeeping is Progress that also runs the timers.
func (r *rxContext) Housekeeping() bool {
	r.leased.Taken().housekeeping()
	return r.domain.work.Ready()
}

// Triggered posts the domain's operations whose counters have reached their
// thresholds. The caller does not hold the lease.
func (r *rxContext) Triggered() { r.domain.work.PostReady() }

// PostRecv posts a receive on the context, with fi.Trigger when a counter reaches
// a value. Errors as of Endpoint.PostRecv.
func (r *rxContext) PostRecv(a *RecvArgs) error {
	if a.Flags&fi.Trigger != 0 {
		return r.domain.triggeredRecv(r, r.attr.Caps, a)
	}
	err := r.postRecv(a)
	r.domain.work.PostReady()
	return err
}

// cancelContext asks for the end of a receive that was posted with context, or
// ends the triggered receives, and the triggered operations of an endpoint, which
// may be nil, that wait with it.
func (r *rxContext) cancelContext(e *Endpoint, context uint64) error {
	q := &r.domain.work
	if q.CancelTriggered(context, r, e) {
		return nil
	}
	err := r.push(&hot.RecvEntry{Flags: hot.RecvCancel, Context: q.PostedAs(r, context)})
	if err == nil {
		r.actUrgent()
	}
	q.PostReady()
	return err
}

// Rx is the endpoint's receive context, nil before Enable.
func (e *Endpoint) Rx() *RxContext { return e.rx }

// SharesRx reports whether the endpoint's receive context is a shared one.
func (e *Endpoint) SharesRx() bool { return e.bound.srx != nil }

// Calls of advance between two readings of the clock, and the time between two
// runs of the timers; as in the data plane, which does the same for C threads.
const (
	idleAdvances  = 32
	timerInterval = 20 * time.Millisecond
)

// restMillis is how long C lets the timers rest while it needs nothing of Go, in
// milliseconds: a call into Go has the runtime's monitor wake some sixty times in
// the next 10 ms. The clock that C reads has ticks of up to 10 ms, and a run just
// before the time would not check peers.
func restMillis(peerCheck time.Duration) uint32 {
	return uint32(min(peerCheck, time.Minute)/time.Millisecond) + 10
}

// advance makes progress, if no other thread does and the context is not closed,
// and runs the timers now and then.
func (r *rxContext) advance() {
	if r.owner != nil {
		return // it is for the owner, under the owner's lock
	}
	if l := r.take(); l != nil {
		if !l.dead {
			l.progress()
			l.advances++
			if l.advances%idleAdvances == 0 && time.Since(l.lastTimers) >= timerInterval {
				l.lastTimers = time.Now()
				l.housekeeping()
			}
		}
		l.give()
	}
}

// tick runs the timers unless another thread is at the context. The caller holds nothing.
func (r *rxContext) tick() {
	if l := r.take(); l != nil {
		if !l.dead {
			l.housekeeping()
		}
		l.give()
		r.domain.work.PostReady()
	}
}

// advanceAll is advance for callers that hold nothing: it also posts what
// counters have triggered.
func (r *rxContext) advanceAll() {
	r.advance()
	r.domain.work.PostReady()
}

// serve does what waits for the runtime, unless another thread is at the context. What has arrived from this host stays
// on the rings, for the data plane. The caller holds nothing.
func (r *rxContext) serve() {
	if r.owner != nil {
		return // it is for the owner, under the owner's lock
	}
	if l := r.take(); l != nil {
		if !l.dead {
			l.proceed(false)
		}
		l.give()
		r.domain.work.PostReady()
	}
}

// attach adds an endpoint that delivers into the context.
func (r *rxContext) attach(e *leasedEP) { r.acquire().attach(e) }

func (r *leasedRx) attach(e *leasedEP) {
	defer r.give()
	r.nextNumber = r.nextNumber%(1<<24-1) + 1 // as much as match.Message has room for
	e.ep.number = r.nextNumber
	e.ep.hot.Number = e.ep.number
	r.eps = append(r.eps, e)
	e.rendezvous.Attach(&r.rendezvous, e.ep.number)
	if r.base.owner != nil && e.ep.bound.av.Shared() {
		r.base.hot.Rest = 0 // reportInsertions comes as often as timers run
	}
	r.base.sleepers.add(&e.ep)
	r.matching.Endpoints = len(r.eps)
	r.base.stats.Store(r.eps[0].ep.stats)
	if r.av == nil {
		r.name(e.ep.bound.av)
	}
	if r.matching.Closed {
		e.ep.links.Transports().SetEagerWindow(false)
	}
}

// flushTime bounds how long closing an endpoint waits for room in its peers'
// rings, for acknowledgements that they wait for, and for each piece of the results.
const flushTime = time.Second

// disable takes an enabled endpoint out of service.
func (e *Endpoint) disable() {
	e.setFast(false)
	enabled.Remove(e)
	e.stopBackground()
	e.domain.drives.Part(e)
	e.detachQueues()
	r := e.rx.acquire()
	l := r.of(e)
	r.flushOut(l)
	r.detach(l)
	e.table.Hide()
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
		for _, p := range e.ep.links.Transports() {
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
	e.rendezvous.Detach()
	e.initiated.Abandon()
	r.dropUnexpected(&e.ep)
	r.dropPeerMessages(&e.ep)
	r.base.sleepers.remove(&e.ep)
	r.matching.Endpoints = len(r.eps)
	r.base.stats.Store(nil)
	if len(r.eps) != 0 {
		r.base.stats.Store(r.eps[0].ep.stats)
	}
	r.ids.Leave(func(o origin) bool { return o.ep == &e.ep })
	if r.av == e.ep.bound.av {
		r.name(nil)
		for _, other := range r.eps {
			r.name(other.ep.bound.av)
			break
		}
	}
	r.publish()
}

// dropUnexpected forgets the unexpected messages that arrived at the endpoint.
func (r *receiving) dropUnexpected(e *Endpoint) {
	for _, tagged := range []bool{true, false} {
		eng := r.matching.Engine(tagged)
		for m := range eng.Messages() {
			if keptEndpoint(m) == e.number {
				eng.RemoveMessage(m)
				r.releaseUnexpected(eng, m)
			}
		}
	}
}
