package deferred

import (
	"slices"

	"github.com/weft-fabric/weft/internal/handover"
)

// Series is an operation that posts others by itself, some at a time: a list's elements. It has begun, and has its turn
// where the operations of a queue are posted.
type Series interface {
	// Pump posts as much as there is room for, and reports whether nothing is left to be posted. It is called by
	// one thread at a time, which holds neither a lease nor a stripe.
	Pump() bool
}

// entered is a series in the queue. Its backlog is kept beside it, because with its end its endpoint may be closed.
type entered struct {
	Series
	backlog *Backlog
}

// AddSeries enters a series, and asks for progress of its receive context. It waits for no other thread.
func (q *Queue) AddSeries(s Series, b *Backlog) {
	q.begun.Push(&handover.Node[entered]{It: entered{s, b}})
	q.ready.Add(1)
	b.add()
}

// DropSeries takes out the series that which chooses. When it returns, no thread is in their Pump. The caller
// holds neither a lease nor a stripe.
func (q *Queue) DropSeries(which func(Series) bool) {
	defer q.runLeft()
	q.runMu.Lock()
	defer q.runMu.Unlock()
	q.series = slices.DeleteFunc(q.begun.Take(q.series), func(s entered) bool {
		if !which(s.Series) {
			return false
		}
		s.backlog.subtract()
		q.ready.Add(-1)
		return true
	})
}

// pumpSeries posts what is left of series. The caller has runMu.
func (q *Queue) pumpSeries() {
	q.series = q.begun.Take(q.series)
	q.series.Step(func(s *entered) bool {
		if !s.Pump() {
			return false
		}
		s.backlog.subtract()
		q.ready.Add(-1)
		return true
	})
}
