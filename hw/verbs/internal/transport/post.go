package transport

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/internal/order"
)

// Posting: claiming places, and giving the queue pair what is ready.

// Claim takes a place, leaving keep places free. False: there is none. Any thread.
func (q *SendQueue) Claim(keep uint64) (pos uint64, ok bool) {
	for {
		t := q.Tail.Load()
		if t&QueueClosed != 0 || t-q.Head.Load()+keep > q.Mask {
			return 0, false
		}
		if q.Tail.CompareAndSwap(t, t+1) {
			p := q.place(t)
			p.Signal, p.Weight, p.Plain, p.Joined, p.Bounce = 0, 1, 0, 0, -1
			return t, true
		}
	}
}

// Ready marks a filled place ready to be posted.
func (q *SendQueue) Ready(pos uint64) { q.place(pos).Ready.Store(pos + 1) }

func (q *SendQueue) ready(pos uint64) bool { return q.place(pos).Ready.Load() == pos+1 }

// LastSend is the position after the last message that was sent and not written into a ring.
func (q *SendQueue) LastSend() uint64 { return atomic.LoadUint64(&q.lastSend) }

// End is the position after the last that was claimed.
func (q *SendQueue) End() uint64 { return q.Tail.Load() &^ QueueClosed }

// Post gives the queue pair what is ready, unless another thread is at it: that thread checks again after it has given
// Run back. True: nothing stays that the queue pair could take. Any thread.
func (q *SendQueue) Post() bool {
	if run := q.Run.Load(); run != QueueIdle {
		return run == QueueBusy
	}
	var c ibv.Call
	posting, all := q.begin(&c)
	for posting {
		c.Perform()
		posting, all = q.goOn(&c)
	}
	return all
}

// begin is Post as far as the device is not needed. posting: c wants something of it, and then the caller calls goOn.
func (q *SendQueue) begin(c *ibv.Call) (posting, all bool) {
	for {
		switch run := q.Run.Load(); {
		case run != QueueIdle:
			return false, run == QueueBusy
		case !q.Run.CompareAndSwap(QueueIdle, QueueBusy):
			continue
		}
		n, waits := q.prepare(c)
		if n > 0 {
			return true, true
		}
		if !q.leave(waits) {
			return false, waits == 0
		}
	}
}

// goOn goes on when the device has done what c wanted.
func (q *SendQueue) goOn(c *ibv.Call) (posting, all bool) {
	taken, n, refused := c.Posted()
	c.Nothing()
	order.Store64(&q.Posted, q.Posted+uint64(taken))
	if refused {
		q.cq.Used.Add(int64(taken - n))
		q.Broken.Store(1)
		q.Run.Store(QueueIdle)
		return false, false
	}
	waits := 0
	if n == ibv.PostMax { // else what has become ready since then is seen after Run is given back
		if n, waits = q.prepare(c); n > 0 {
			return true, true
		}
	}
	if !q.leave(waits) {
		return false, waits == 0
	}
	return q.begin(c)
}

// leave gives Run back, and reports whether the caller is to try again: something has become ready behind
// what was posted, or there is room now for the waits operations that found none. If there is no room yet,
// the next Progress tries again. It is asked to when Run is back, as it passes by a queue at which a thread
// is; and Used is read behind that, as the lease holder may have made room before, have seen nothing asked
// for, and sleep.
func (q *SendQueue) leave(waits int) (again bool) {
	next := q.Posted
	q.Run.Store(QueueIdle)
	if waits == 0 {
		return q.ready(next)
	}
	if q.cq.calls != 0 {
		callsAt(q.cq.calls).Or(CallPost)
	}
	return q.cq.Used.Load()+int64(waits) <= q.cq.Size
}

// prepare wants what is ready posted, of which it returns how much that is. waits is how many operations are
// ready for which there was no room in the completion queue; leave says so. The caller holds Run.
func (q *SendQueue) prepare(c *ibv.Call) (n, waits int) {
	for n < ibv.PostMax && q.ready(q.Posted+uint64(n)) {
		n++
	}
	if n == 0 {
		return 0, 0
	}
	used := q.cq.Used.Add(int64(n))
	if used > q.cq.Size {
		q.cq.Used.Add(-int64(n))
		return 0, n
	}
	if n > 1 && q.JoinBytes != 0 {
		q.join(n)
	}
	if q.GatherMax != 0 {
		q.gather(n)
	}
	q.sign(n, used > q.cq.Size/2)
	c.Post(q.qp, q.ops, q.Mask, q.Posted, n)
	return n, 0
}

// sign numbers the next n operations and decides which of them are signaled: those that a caller waits for, and one
// from time to time, which ends all before it. An operation weighs more when it has a bounce buffer. In a crowded
// completion queue the last one is signaled, or many peers' few operations would fill it and never end. Of several in
// one request the last one is.
func (q *SendQueue) sign(n int, crowded bool) {
	limit := int64(q.Mask+1) / 4
	id := q.ID | uint64(q.Gen&0xff)<<32
	asked := false
	for k := range n {
		pos := q.Posted + uint64(k)
		op, p := q.op(pos), q.place(pos)
		q.Weight += int64(p.Weight)
		if op.Opcode == ibv.OpJoined {
			continue
		}
		op.ID = id | pos&0xffffffff
		op.Flags &^= ibv.Signaled
		if op.Opcode == ibv.OpSend {
			if n == 1 && q.eagerAddr != 0 {
				q.turnEager(pos)
			}
			q.eagerOn = 1
			order.Store64(&q.lastSend, pos+1)
		}
		if asked = asked || p.Signal != 0; op.With != 0 {
			continue
		}
		if asked || q.Weight >= limit || crowded && k == n-1 {
			op.Flags |= ibv.Signaled
			q.cq.signaled.Add(1)
			q.Weight = 0
			q.LastSignal.Store(pos + 1)
		}
		asked = false
	}
}

// Position is the position of a completion's operation. False: it is a former queue pair's, or a late one.
func (q *SendQueue) Position(id uint64) (pos uint64, ok bool) {
	head := q.Head.Load()
	pos = head + uint64(int64(int32(uint32(id)-uint32(head))))
	return pos, uint8(q.Gen) == uint8(id>>32) && pos >= head && pos < q.End()
}

// endPlain ends the operations up to a successful completion, if they are plain. False: nothing happened. Lease.
func (q *SendQueue) endPlain(id uint64) bool {
	last, ok := q.Position(id)
	if !ok {
		return false
	}
	head := q.Head.Load()
	for pos := head; pos <= last; pos++ {
		if q.place(pos).Plain == 0 {
			return false
		}
	}
	q.cq.Used.Add(-int64(last + 1 - head))
	q.Head.Store(last + 1) // last: now the places may be claimed
	return true
}

// Corks reports whether an operation may wait for the next one: the device is at others, and not as many wait as go
// with one doorbell. Of those that wait one from time to time is signaled.
func (q *SendQueue) Corks(pos uint64) bool {
	posted := atomic.LoadUint64(&q.Posted)
	return posted != q.Head.Load() && pos-posted < ibv.PostMax-1
}

// FullForNow reports whether a signaled operation on its way will free places of a full queue. Else the runtime has to
// see to it.
func (q *SendQueue) FullForNow() bool {
	tail := q.Tail.Load()
	return tail&QueueClosed == 0 && q.LastSignal.Load() > q.Head.Load() && atomic.LoadUint64(&q.Posted) == tail
}
