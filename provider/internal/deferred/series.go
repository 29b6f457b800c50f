package deferred

import "slices"

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

// AddSeries enters a series, and asks for progress of its receive context.
func (q *Queue) AddSeries(s Series, b *Backlog) {
	q.mu.Lock()
	q.newSeries = append(q.newSeries, entered{s, b})
	q.mu.Unlock()
	q.ready.Add(1)
	b.add()
}

// DropSeries takes out the series that which chooses. When it returns, no thread is in their Pump.
func (q *Queue) DropSeries(which func(Series) bool) {
	q.runMu.Lock()
	defer q.runMu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	drop := func(s entered) bool {
		if !which(s.Series) {
			return false
		}
		s.backlog.subtract()
		q.ready.Add(-1)
		return true
	}
	q.series, q.newSeries = slices.DeleteFunc(q.series, drop), slices.DeleteFunc(q.newSeries, drop)
}

// anyNewSeries reports whether one has begun that has not been pumped.
func (q *Queue) anyNewSeries() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.newSeries) != 0
}

// pumpSeries posts what is left of series. The caller has runMu.
func (q *Queue) pumpSeries() {
	q.mu.Lock()
	q.series = append(q.series, q.newSeries...)
	q.newSeries = nil
	q.mu.Unlock()
	q.series.Step(func(s *entered) bool {
		if !s.Pump() {
			return false
		}
		s.backlog.subtract()
		q.ready.Add(-1)
		return true
	})
}
