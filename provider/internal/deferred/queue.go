package deferred

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/handover"
	"github.com/weft-fabric/weft/internal/pending"
)

// Queue is a domain's operations that wait for counters, and those that have stopped to wait but are not posted or, if
// deferred, not complete. The zero value is an empty queue. Any thread may call its methods.
//
// mu is not taken while no operation waits, for series neither. No thread that posts waits for runMu.
//
//	run (runMu) → mu
//	a counter's locks → mu
type Queue struct {
	mu    sync.Mutex
	all   map[uint64]*Op // by number
	last  uint64         // number given out last
	fired []*Op          // in order
	// fresh is the length of fired, ready that and the number of blocked operations and of series. Added to by threads
	// that fire, under mu, ready also by those that enter a series, under no lock; taken off by the thread that has
	// runMu; read by threads that may run; sequentially consistent.
	fresh, ready atomic.Int32

	begun handover.Stack[entered] // series that the thread which has runMu has not taken over

	// runMu is tried by threads that post, which leave what they post to the one that has it; waited for by those that
	// close or cancel.
	runMu   sync.Mutex
	blocked pending.List[*blockedSequence] // in the order in which they became blocked; under runMu
	series  pending.List[entered]          // of which something is left to be posted; under runMu
}

// blockedSequence is a sequence whose first operation found no room.
type blockedSequence struct {
	sequence Sequence
	list     pending.List[*Op]
}

// Number returns the number of a new operation.
func (q *Queue) Number() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	return q.last | NumberBit
}

// Add makes an operation wait. If its counter is there already, it is posted
// before Add returns, as far as there is room. The caller holds nothing.
func (q *Queue) Add(w *Op) {
	for _, c := range []*cq.Counter{w.On, w.Done, w.counter} {
		if c != nil {
			c.Retain()
		}
	}
	w.retained = true
	w.trigger = cq.Trigger{Threshold: w.At, Total: w.Deferred, Fire: func() { q.fire(w) }}
	q.mu.Lock()
	if q.all == nil {
		q.all = map[uint64]*Op{}
	}
	q.all[w.Number] = w
	q.mu.Unlock()
	w.On.Arm(&w.trigger)
	q.PostReady()
}

// Changes makes w an operation on a counter: it sets it to value, or with add advances it by value.
func (q *Queue) Changes(w *Op, c *cq.Counter, value uint64, add bool) {
	w.counter = c
	change := func(c *cq.Counter) { c.Set(value) }
	if add {
		change = func(c *cq.Counter) { c.Add(value) }
	}
	w.Post = func() error {
		if q.remove(w.Number) != nil {
			c.ReleaseAfter(change)
		}
		return nil
	}
}

// fire enters an operation into the list, and asks for progress in case that
// the thread that counted does not get to posting it.
func (q *Queue) fire(w *Op) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.state != waiting {
		return
	}
	w.state = fired
	q.fired = append(q.fired, w)
	q.fresh.Add(1)
	q.ready.Add(1)
	w.Backlog.add()
}

// remove forgets an operation; nil if it was forgotten already.
func (q *Queue) remove(number uint64) *Op {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.all[number]
	if w == nil {
		return nil
	}
	delete(q.all, number)
	w.state = gone
	return w
}

// End counts the end of deferred work of n bytes.
func (q *Queue) End(number uint64, failed bool, n uint64) {
	w := q.remove(number)
	if w == nil || w.Done == nil {
		return
	}
	w.Done.ReleaseAfter(func(c *cq.Counter) {
		if failed {
			c.CountError(1)
		} else {
			c.Done(n)
		}
	})
}

// ContextOf returns the context of posted deferred work, 0 for a number that is none's.
func (q *Queue) ContextOf(number uint64) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.all[number]; w != nil {
		return w.Context
	}
	return 0
}

// DoneBy reports whether c is the completion counter of deferred work.
func (q *Queue) DoneBy(number uint64, c *cq.Counter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.all[number]
	return w != nil && w.Done == c
}

// PostedAs returns the number under which owner's deferred work with a context
// was posted, else the context itself.
func (q *Queue) PostedAs(owner any, context uint64) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	for number, w := range q.all {
		if w.Deferred && w.state == posted && w.Context == context && w.Sequence.Owner == owner {
			return number
		}
	}
	return context
}

// Len returns the number of operations that are not gone.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.all)
}

// Cancel takes back the operations that which chooses and that are not posted,
// and returns them in the order in which they were queued. which is called with the queue locked.
func (q *Queue) Cancel(which func(*Op) bool) []*Op {
	var found []*Op
	q.mu.Lock()
	for number, w := range q.all {
		if w.state < posted && which(w) {
			found = append(found, w)
			delete(q.all, number)
			if w.state == fired {
				w.Backlog.subtract()
			}
			w.state = gone // a walk through the lists skips it
		}
	}
	q.mu.Unlock()
	slices.SortFunc(found, func(a, b *Op) int { return cmp.Compare(a.Number, b.Number) })
	for _, w := range found {
		w.On.Disarm(&w.trigger)
		w.release()
	}
	return found
}

// Withdraw is Cancel that finds none that is being posted: one that finds no room waits again when it returns, and
// would be posted later. The caller holds neither a lease nor a stripe.
func (q *Queue) Withdraw(which func(*Op) bool) []*Op {
	defer q.runLeft()
	q.runMu.Lock()
	defer q.runMu.Unlock()
	return q.Cancel(which)
}

// CancelTriggered ends the triggered operations of owners that wait with a context: they fail with fi.ECANCELED. It
// reports whether there were any.
func (q *Queue) CancelTriggered(context uint64, owners ...any) bool {
	list := q.Cancel(func(w *Op) bool {
		return !w.Deferred && w.User == context && slices.Contains(owners, w.Sequence.Owner)
	})
	for _, w := range list {
		w.Fail(fi.ECANCELED)
	}
	return len(list) != 0
}

// Leave drops what there is of an endpoint or receive context that closes,
// without completions. No other thread uses it. The caller holds neither a lease nor a stripe.
func (q *Queue) Leave(owner any) {
	defer q.runLeft()
	q.runMu.Lock() // no posting is in progress
	defer q.runMu.Unlock()
	own := func(w *Op) bool { return w.Sequence.Owner == owner }
	q.Cancel(own)
	q.sweep()
	q.mu.Lock()
	var dropped []*Op
	for number, w := range q.all {
		if own(w) {
			delete(q.all, number)
			w.state = gone
			dropped = append(dropped, w)
		}
	}
	q.mu.Unlock()
	for _, w := range dropped {
		if w.Done != nil {
			w.Done.Release()
		}
	}
}
