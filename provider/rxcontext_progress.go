package provider

import (
	"time"

	"github.com/weft-fabric/weft/fi"
)

// RxContext is a receive context as C's callbacks name it: progress is made on
// receive contexts, not endpoints, because a shared one serves several.
type RxContext = rxContext

func (r *rxContext) setHandle(h uint64) {
	r.handle = h
	r.hot.Handle = h
}

// LeasedRx is a receive context as C's callbacks that have its progress lease name it.
type LeasedRx = leasedRx

// Leased is the context for a callback of C, which has taken the lease before, or knows that the context needs none.
func (r *rxContext) Leased() *LeasedRx { return r.leased.Taken() }

// Progress makes progress. It returns whether Triggered is to be called.
func (r *leasedRx) Progress() bool {
	r.progress()
	return r.base.domain.work.Ready()
}

// Housekeeping is Progress that also runs the timers.
func (r *leasedRx) Housekeeping() bool {
	r.housekeeping()
	return r.base.domain.work.Ready()
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
	err := r.receives.Cancel(q.PostedAs(r, context))
	q.PostReady()
	return err
}

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
		defer l.give() // also where a program recovers from a fault at its own memory
		if !l.dead {
			l.progress()
			l.advances++
			if l.advances%idleAdvances == 0 && time.Since(l.lastTimers) >= timerInterval {
				l.lastTimers = time.Now()
				l.housekeeping()
			}
		}
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
