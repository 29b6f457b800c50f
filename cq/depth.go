package cq

import "sync/atomic"

// Depth returns how many completions wait in the queue, as far as its words
// say while others change them, and how many more are kept off it because it
// is full.
func (q *Queue) Depth() (queued, overflow uint64) {
	for i := range q.rings {
		r := &q.rings[i]
		n := r.read.Unread()
		if int64(n) > 0 {
			queued += min(n, r.Slots())
		}
	}
	return queued, atomic.LoadUint64(&q.hot.Overflow)
}
