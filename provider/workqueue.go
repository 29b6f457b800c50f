package provider

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// workQueue is a domain's operations that wait for counters, and those that
// have stopped to wait but are not posted or, if deferred, not complete.
//
// None of its locks is taken while no operation waits.
//
//	run (runMu) → mu
//	driveMu → a counter's locks → mu
type workQueue struct {
	mu       sync.Mutex
	all      map[uint64]*queuedOp // by number
	last     uint64               // number given out last
	fired    []*queuedOp          // in order
	newLists []*listOp            // that begin
	// fresh is the length of fired, ready that and the number of blocked
	// operations and of lists. Changed under mu and runMu, read by threads that may run;
	// sequentially consistent.
	fresh, ready atomic.Int32

	runMu   sync.Mutex
	blocked []*blockedSequence // in the order in which they became blocked; under runMu
	lists   []*listOp          // of which elements are left to be posted; under runMu

	driveMu sync.Mutex
	eps     []*Endpoint // that deferred work and regions' counters may need progress of, and tokens name
	driven  map[*cq.Counter]bool
}

// blockedSequence is a sequence whose first operation found no room.
type blockedSequence struct {
	sequence sequence
	list     []*queuedOp
}

// number returns the number of new work.
func (q *workQueue) number() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	return q.last | workBit
}

// queue makes an operation wait. If its counter is there already, it is posted
// before queue returns, as far as there is room.
func (q *workQueue) queue(w *queuedOp) {
	for _, c := range []*cq.Counter{w.on, w.done, w.counter} {
		if c != nil {
			c.Retain()
		}
	}
	w.held = true
	w.trigger.Fire = func() { q.fire(w) }
	q.mu.Lock()
	if q.all == nil {
		q.all = map[uint64]*queuedOp{}
	}
	q.all[w.id] = w
	q.mu.Unlock()
	w.on.Arm(&w.trigger)
	q.postReady()
}

// fire enters an operation into the list, and asks for progress in case that
// the thread that counted does not get to posting it.
func (q *workQueue) fire(w *queuedOp) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.state != workWaiting {
		return
	}
	w.state = workFired
	q.fired = append(q.fired, w)
	q.fresh.Add(1)
	q.ready.Add(1)
	if r := w.rx; r != nil {
		r.deferred.Add(1)
		atomic.StoreUint32(&r.hot.Attention, 1)
		r.ring()
	}
}

// remove forgets an operation; nil if it was forgotten already.
func (q *workQueue) remove(id uint64) *queuedOp {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.all[id]
	if w == nil {
		return nil
	}
	delete(q.all, id)
	w.state = workGone
	return w
}

// finish counts the end of deferred work of n bytes.
func (q *workQueue) finish(id uint64, failed bool, n uint64) {
	w := q.remove(id)
	if w == nil || w.done == nil {
		return
	}
	w.done.Finish(func(c *cq.Counter) {
		if failed {
			c.CountError(1)
		} else {
			c.Done(n)
		}
	})
}

// contextOf returns the context of posted deferred work.
func (q *workQueue) contextOf(id uint64) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.all[id]; w != nil {
		return w.context
	}
	return 0
}

// doneBy reports whether c is the completion counter of deferred work.
func (q *workQueue) doneBy(id uint64, c *cq.Counter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.all[id]
	return w != nil && w.done == c
}

// receiveOf returns the number under which the deferred receive with a context
// was posted, else the context itself.
func (q *workQueue) receiveOf(r *rxContext, context uint64) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, w := range q.all {
		if w.deferred && w.state == workPosted && w.context == context && w.sequence.owner == r {
			return id
		}
	}
	return context
}

// cancel takes back the operations that which chooses and that are not posted,
// and returns them in the order in which they were queued.
func (q *workQueue) cancel(which func(*queuedOp) bool) []*queuedOp {
	var found []*queuedOp
	q.mu.Lock()
	for id, w := range q.all {
		if w.state < workPosted && which(w) {
			found = append(found, w)
			delete(q.all, id)
			if w.state == workFired && w.rx != nil {
				w.rx.deferred.Add(-1)
			}
			w.state = workGone // a walk through the lists skips it
		}
	}
	q.mu.Unlock()
	slices.SortFunc(found, func(a, b *queuedOp) int { return int(a.id - b.id) })
	for _, w := range found {
		w.on.Disarm(&w.trigger)
		w.release()
	}
	return found
}

// release gives up the counters of an operation that is gone and was not posted.
func (w *queuedOp) release() {
	if w.held {
		w.on.Release()
	}
	for _, c := range []*cq.Counter{w.done, w.counter} {
		if c != nil {
			c.Release()
		}
	}
}

// cancelTriggered ends the triggered receives of a context, and the triggered
// operations of an endpoint, which may be nil, that wait with a context. It says
// whether there were any.
func (q *workQueue) cancelTriggered(r *rxContext, e *Endpoint, context uint64) bool {
	list := q.cancel(func(w *queuedOp) bool {
		return !w.deferred && w.user == context && w.rx == r && (w.ep == e || w.ep == nil)
	})
	for _, w := range list {
		w.fail(fi.ECANCELED)
	}
	return len(list) != 0
}

// leave drops what there is of an endpoint or receive context that closes,
// without completions. No other thread uses it.
func (q *workQueue) leave(owner any) {
	q.runMu.Lock() // no posting is in progress
	defer q.runMu.Unlock()
	own := func(w *queuedOp) bool { return w.sequence.owner == owner }
	q.cancel(own)
	q.sweep()
	q.mu.Lock()
	var posted []*queuedOp
	for id, w := range q.all {
		if own(w) {
			delete(q.all, id)
			w.state = workGone
			posted = append(posted, w)
		}
	}
	q.mu.Unlock()
	for _, w := range posted {
		if w.done != nil {
			w.done.Release()
		}
	}
}

// join makes deferred work and the counters of regions have progress of an
// endpoint that is enabled, and part takes that back.
func (q *workQueue) join(e *Endpoint) error {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	for c := range q.driven {
		if err := e.drive(c); err != nil {
			return err
		}
	}
	q.eps = append(q.eps, e)
	return nil
}

func (q *workQueue) part(e *Endpoint) {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	i := slices.Index(q.eps, e)
	if i < 0 {
		return
	}
	q.eps = slices.Delete(q.eps, i, i+1)
	for c := range q.driven {
		e.undrive(c)
	}
}

// endpoint returns an enabled endpoint for one-sided operations that fits, nil for none.
func (q *workQueue) endpoint(fits func(e *Endpoint) bool) *Endpoint {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	if i := slices.IndexFunc(q.eps, fits); i >= 0 {
		return q.eps[i]
	}
	return nil
}

// drive makes readers of a counter make progress of all endpoints: what
// advances it may be anywhere in the domain.
func (q *workQueue) drive(c *cq.Counter) error {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	if q.driven[c] {
		return nil
	}
	for i, e := range q.eps {
		if err := e.drive(c); err != nil {
			for _, other := range q.eps[:i] {
				other.undrive(c)
			}
			return err
		}
	}
	if q.driven == nil {
		q.driven = map[*cq.Counter]bool{}
	}
	q.driven[c] = true
	return nil
}

// drive makes readers of a counter make progress of the endpoint. driveMu is held.
func (e *peering) drive(c *cq.Counter) error {
	source, err := e.sourceOf(c)
	if err != nil {
		return err
	}
	return c.Drive(e.hot, source)
}

func (e *peering) undrive(c *cq.Counter) {
	if e.bell == nil {
		c.Undrive(e.hot, e.source)
		return
	}
	c.Undrive(e.hot, e.source, e.bell)
}

// undrive is called when a counter is closed.
func (q *workQueue) undrive(c *cq.Counter) {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	if !q.driven[c] {
		return
	}
	delete(q.driven, c)
	for _, e := range q.eps {
		e.undrive(c)
	}
}

// wake wakes threads that sleep on a counter that is driven.
func (q *workQueue) wake() {
	q.driveMu.Lock()
	defer q.driveMu.Unlock()
	for c := range q.driven {
		c.Waiter().Wake()
	}
}
