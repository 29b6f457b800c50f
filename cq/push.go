package cq

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// Writing completions to a queue. Any thread may.

// ringIndex maps a ring number to one of so many that exist: 0 is the progress engines',
// n the one of stripe n-1.
func ringIndex(n, rings int) uint32 {
	stripes := uint32(rings) - 1 // 0 or a power of two
	if n <= 0 || stripes == 0 {
		return 0
	}
	return 1 + (uint32(n)-1)&(stripes-1)
}

// TryComplete writes a completion to a ring: 0, or 1 plus a stripe's number, and
// wakes readers that sleep. False: the ring is full, or posts are to wait, and nothing has happened.
func (q *Queue) TryComplete(ring int, e Entry) bool {
	if postsWait(q.hot) || !q.rings[ringIndex(ring, len(q.rings))].push(&e, hot.CQMarkEntry, cqring.Exclusive(q.hot)) {
		return false
	}
	q.Wake()
	return true
}

// Room reports whether TryComplete would succeed now. Another thread may take the room.
func (q *Queue) Room(ring int) bool {
	return !postsWait(q.hot) && q.rings[ringIndex(ring, len(q.rings))].HasRoom()
}

// postsWait reports whether completions of posts are kept off the rings: later ones must not be read before those.
func postsWait(q *hot.CQ) bool { return atomic.LoadUint32(&q.PostsKept) != 0 }

// Unread is about how many completions are not read.
func (q *Queue) Unread() uint64 {
	n := uint64(0)
	for i := range q.rings {
		n += q.rings[i].read.Unread()
	}
	return n
}

// Complete writes a completion to ring 0. It never fails: when the ring is
// full, the completion waits in the overflow list until readers have made room,
// and later ones wait behind it.
func (q *Queue) Complete(e Entry) { q.complete(&e, hot.CQMarkEntry) }

// CompleteError writes an error completion to ring 0, as Complete does.
func (q *Queue) CompleteError(e Entry, info ErrorInfo) {
	e = q.errors.keep(e, &info)
	q.complete(&e, hot.CQMarkError)
}

func (q *Queue) complete(e *Entry, mark uint32) {
	if atomic.LoadUint64(&q.hot.Overflow) != 0 || !q.rings[0].push(e, mark, cqring.Exclusive(q.hot)) {
		q.hold(kept{entry: *e, mark: mark})
	}
	q.Wake()
}

// CompletePost is TryComplete that never fails, for an operation that has been posted: behind it later posts find no
// room, until it is on its ring. On ring 0 it is as Complete.
func (q *Queue) CompletePost(ring int, e Entry) {
	if ring == 0 {
		q.Complete(e)
		return
	}
	if q.TryComplete(ring, e) {
		return
	}
	q.hold(kept{entry: e, mark: hot.CQMarkEntry, to: ringIndex(ring, len(q.rings)), post: true})
	q.Wake()
}

// hold puts a completion on the overflow list, or on its ring if there is room
// by now and nothing waits.
func (q *Queue) hold(k kept) {
	q.overflow.mu.Lock()
	defer q.overflow.mu.Unlock()
	q.flush()
	if q.overflow.n == 0 && q.rings[k.to].push(&k.entry, k.mark, cqring.Exclusive(q.hot)) {
		return
	}
	q.overflow.append(k)
	if k.post {
		atomic.StoreUint32(&q.hot.PostsKept, 1)
	}
	atomic.StoreUint64(&q.hot.Overflow, uint64(q.overflow.n))
}

// FlushOverflow moves completions of the overflow list to their rings as far as there is room.
// Readers call it when the rings are empty; it does nothing while another thread is
// at it.
func (q *Queue) FlushOverflow() {
	if !q.overflow.mu.TryLock() {
		return
	}
	defer q.overflow.mu.Unlock()
	q.flush()
}

// flush does it. The caller holds overflow.mu.
func (q *Queue) flush() {
	for o := &q.overflow; o.n > 0; o.drop() {
		if k := o.first(); !q.rings[k.to].push(&k.entry, k.mark, cqring.Exclusive(q.hot)) {
			break
		}
	}
	if q.overflow.n == 0 {
		atomic.StoreUint32(&q.hot.PostsKept, 0)
	}
	atomic.StoreUint64(&q.hot.Overflow, uint64(q.overflow.n))
}

// Wake wakes threads that sleep on the queue, after something was published. The data plane
// asks for it only if the queue is armed.
func (q *Queue) Wake() {
	if q.waitable {
		order.Fence() // W0: publishing only released
		q.wait.Wake()
	}
}
