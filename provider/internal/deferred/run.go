package deferred

import (
	"github.com/weft-fabric/weft/fi"
)

// Ready reports whether PostReady has something to do.
func (q *Queue) Ready() bool { return q.ready.Load() != 0 }

// PostReady posts the operations whose counters have reached their thresholds. It is
// called where this thread holds neither a lease nor a stripe.
func (q *Queue) PostReady() {
	if q.Ready() {
		q.run()
	}
}

// run goes through the lists, unless another thread does or this one does
// further up its stack: that thread polls again when it has ended.
func (q *Queue) run() {
	for q.runMu.TryLock() {
		q.retry()
		for w := q.next(); w != nil; w = q.next() {
			q.step(w)
		}
		q.pumpSeries()
		q.runMu.Unlock()
		if !q.left() {
			return
		}
	}
}

// left reports whether something has come that no thread which has had runMu has seen.
func (q *Queue) left() bool { return q.fresh.Load() != 0 || q.begun.Any() }

// runLeft is run for a thread that has given runMu back without it, by what others have left to it meanwhile.
func (q *Queue) runLeft() {
	if q.left() {
		q.run()
	}
}

// next takes the first operation off the list, nil for none. The caller has runMu.
func (q *Queue) next() *Op {
	if q.fresh.Load() == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.fired[0]
	q.fired[0] = nil
	if q.fired = q.fired[1:]; len(q.fired) == 0 {
		q.fired = nil // what was taken off is garbage
	}
	q.fresh.Add(-1)
	return w
}

// step posts an operation, or puts it behind those of its sequence that wait for
// room.
func (q *Queue) step(w *Op) {
	for _, b := range q.blocked {
		if b.sequence == w.Sequence {
			b.list = append(b.list, w)
			return
		}
	}
	if !q.attempt(w) {
		q.blocked = append(q.blocked, &blockedSequence{w.Sequence, []*Op{w}})
	}
}

// retry posts what waits for room, as far as there is some now.
func (q *Queue) retry() {
	q.blocked.Step(func(at **blockedSequence) bool {
		b, n := *at, 0
		for n < len(b.list) && q.attempt(b.list[n]) {
			n++
		}
		b.list = b.list[n:]
		return len(b.list) == 0
	})
}

// sweep drops the canceled operations that wait for room.
func (q *Queue) sweep() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range q.blocked {
		b.list.Step(func(w **Op) bool {
			if (*w).state != gone {
				return false
			}
			q.ready.Add(-1)
			return true
		})
	}
}

// attempt posts an operation. False: there is no room, and it stays what it
// was.
func (q *Queue) attempt(w *Op) bool {
	q.mu.Lock()
	if w.state != fired { // canceled
		q.mu.Unlock()
		q.ready.Add(-1)
		return true
	}
	w.state = posted
	retained := w.retained
	w.retained = false
	q.mu.Unlock()
	if retained {
		w.On.Release() // before the operation ends, which may be what the application waits for to close it
	}
	err := w.Post()
	if err != nil && fi.ErrnoOf(err) == fi.EAGAIN {
		q.mu.Lock()
		defer q.mu.Unlock()
		w.state = fired
		return false
	}
	w.Backlog.subtract()
	q.ready.Add(-1)
	switch {
	case err != nil:
		w.Fail(fi.ErrnoOf(err))
		q.remove(w.Number)
	case !w.Deferred:
		q.remove(w.Number)
	}
	return true
}
