package cxi

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
	"github.com/weft-fabric/weft/internal/order"
)

// txQueue is a transmit queue with the event queue of what it sends. Everything in it, and the windows of the peers
// that belong to it, is guarded by its lock.
type txQueue struct {
	i      *Iface
	lock   bellLock
	q      nic.Queue
	cq     *libcxi.CQ
	events eventQueue

	posted counted // commands whose event is to come
	limit  int64   // of posted
	corked int     // messages in a row without a doorbell; under the lock
	// refusedAt is when the NIC refused a command the last time, zero: never. What was posted before need not be
	// answered for.
	refusedAt time.Time

	ops       []op // one-sided operations and questions
	free      []uint32
	completed []ended
	spare     []ended // what completed was before
	// anyCompleted says that completed is not empty. Written under the lock, read by the lease holder.
	anyCompleted atomic.Bool
}

// counted is a number that is changed under a queue's lock, by a release store, and read by any thread
// before it polls.
type counted struct{ n uint64 }

// add changes the number. The caller has the queue's lock.
func (c *counted) add(n int64) { order.Store64(&c.n, c.n+uint64(n)) }

func (c *counted) load() int64 { return int64(atomic.LoadUint64(&c.n)) }

// ended is what the lease holder reports to the caller of an operation.
type ended struct {
	comp *hw.Completion
	err  error
}

// open makes the queue.
func (q *txQueue) open(i *Iface, wait *libcxi.WaitObject) (err error) {
	q.i = i
	q.lock.guard(&q.q, &i.driver.corked)
	q.limit = int64(i.cfg.Posted)
	// What was read is given back by quarters, and the NIC keeps some for itself.
	if err = q.events.open(i.d, 2*i.cfg.Posted+64, false, wait, 0); err != nil {
		return err
	}
	// A command takes 256 bytes at most.
	slots := min(max(4*i.cfg.Posted, 256), wire.LimitCmdqCount/4)
	if q.cq, err = i.d.lni.NewTransmitQueue(slots, i.networks.profile(i.d), q.events.eq); err != nil {
		q.cq = nil
		return limit(err)
	}
	q.q.Init(q.cq.Ring(), q.cq.Launch(), q.cq.HalfSlots())
	q.state()
	q.ops = make([]op, i.cfg.Posted)
	q.free = make([]uint32, 0, i.cfg.Posted)
	for n := range q.ops {
		q.free = append(q.free, uint32(len(q.ops)-1-n))
	}
	return nil
}

// state writes what inline commands take with them.
func (q *txQueue) state() {
	q.q.SetState(&nic.State{Initiator: q.i.addr.id(), Index: indexMessages, EQ: q.events.number})
}

func (q *txQueue) close() error {
	var err error
	if q.cq != nil {
		err = q.cq.Close()
		q.cq = nil
	}
	return errors.Join(err, q.events.close())
}

func (q *txQueue) take() { q.lock.take() }

// give gives the lock back, and sees to the doorbell (bellLock).
func (q *txQueue) give() { q.lock.give() }

// room reports whether a command may be posted. The caller has the lock.
func (q *txQueue) room() bool { return q.posted.load() < q.limit && q.q.Room(1) }

// tryPoll takes in all events, if there are any.
func (q *txQueue) tryPoll() {
	if q.posted.load() != 0 && q.events.Waiting() {
		q.take()
		q.poll()
		q.give()
	}
}

// poll takes in all events. The caller has the lock.
func (q *txQueue) poll() {
	for e := q.events.Peek(); e.There(); e = q.events.Peek() {
		q.event(e)
		q.events.Done(e)
	}
}

// event takes one in.
func (q *txQueue) event(e nic.Event) {
	switch e.Type() {
	case wire.EventAck, wire.EventReply:
	case wire.EventCommandFailure:
		q.refusedAt = time.Now()
		q.q.NoState() // it may be what was refused
		q.state()
		q.i.deviceLost(errCommand(e.Code()))
		return
	default:
		return
	}
	q.posted.add(-1)
	cookie, code := e.UserPtr(), e.Code()
	if cookie&cookieOp != 0 {
		q.opEnded(uint32(cookie), code)
		return
	}
	if cookie&cookieName != 0 {
		q.i.named.answered(cookie&^cookieName, code)
		return
	}
	if p := q.i.peer(uint32(cookie >> 16)); p != nil {
		p.acknowledged(uint16(cookie), code)
	}
}

// Cookies of commands: of a message its peer's index and position, of an operation its number, as of a question for an
// address.
const (
	cookieOp   = 1 << 60
	cookieName = 1 << 61
)

func messageCookie(peer uint32, pos uint64) uint64 { return uint64(peer)<<16 | pos&0xffff }

// complete has the lease holder report an operation. The caller has the lock.
func (q *txQueue) complete(e ended) {
	q.completed = append(q.completed, e)
	q.anyCompleted.Store(true)
}

// completeAll reports what has ended and returns to how many callers. Lease.
func (q *txQueue) completeAll() int {
	if !q.anyCompleted.Load() {
		return 0
	}
	q.take()
	list := q.completed
	q.completed, q.spare = q.spare[:0], list
	q.anyCompleted.Store(false)
	q.give()
	n := 0
	for k := range list {
		t := list[k]
		list[k] = ended{}
		t.comp.Update(1, t.err)
		n++
	}
	return n
}

// opKind says what an operation is.
type opKind uint8

const (
	opPlain    opKind = iota // its end goes to its completion, if there is one
	opPresence               // asks whether the peer's interface is there
	opReset                  // says that the endpoint has failed
)

// op is a command that is not a message. Those of one peer are linked in the order of their posting.
type op struct {
	e          *Endpoint
	kind       opKind
	next, prev uint32
	number     uint64 // among the peer's
	comp       *hw.Completion
}

// noOp ends the lists.
const noOp = ^uint32(0)

// begin takes an operation. nil: none is free, or there is no room for its command. The caller has the lock.
func (q *txQueue) begin(e *Endpoint, kind opKind) (o *op, n uint32) {
	if len(q.free) == 0 || !q.room() {
		return nil, noOp
	}
	n = q.free[len(q.free)-1]
	o = &q.ops[n]
	*o = op{e: e, kind: kind, next: noOp, prev: noOp}
	return o, n
}

// commit keeps an operation whose command was written.
func (q *txQueue) commit(o *op, n uint32) {
	q.free = q.free[:len(q.free)-1]
	q.posted.add(1)
	o.e.ops.push(q, o, n)
}

// opEnded deals with the end of an operation. The caller has the lock.
func (q *txQueue) opEnded(n, code uint32) {
	if n >= uint32(len(q.ops)) || q.ops[n].e == nil {
		return
	}
	o := &q.ops[n]
	e := o.e
	e.ops.remove(q, o)
	err := codeError(code)
	if err == nil {
		e.heard.Store(true)
		e.lostSince = 0
	}
	switch o.kind {
	case opPresence:
		e.asked.Store(false)
		e.present(code)
	case opReset:
		e.resetAnswered(code)
	}
	if err != nil && o.kind != opPresence && o.kind != opReset {
		if errors.Is(err, hw.ErrPeerDead) {
			e.suspect.Store(true)
		}
		q.i.logf("peer %s: operation failed: %v", e, err)
	}
	if o.comp != nil {
		q.complete(ended{comp: o.comp, err: err})
	}
	*o = op{}
	q.free = append(q.free, n)
	if e.failure.Load() != nil {
		q.i.notify(e)
	}
}

// overdue reports whether the NIC answers no longer for what was posted before it refused a command. The caller has the
// lock.
func (q *txQueue) overdue(now time.Time) bool {
	return !q.refusedAt.IsZero() && now.Sub(q.refusedAt) >= q.i.cfg.PathTimeout
}

// abandon ends the operations of a peer for which no answer comes. The NIC may be at their memory, so that of our own
// is not used again. The caller has the lock.
func (q *txQueue) abandon(e *Endpoint, err error) {
	for e.ops.count > 0 {
		o := &q.ops[e.ops.first]
		e.ops.remove(q, o)
		if o.comp != nil {
			q.complete(ended{comp: o.comp, err: err})
		}
		*o = op{}
	}
	e.w.inflight = 0
	e.word = lastWord{}
}

// opList are a peer's operations, oldest first.
type opList struct {
	first, last uint32
	posted      uint64 // the number of the newest; the first is 1
	count       int
}

func (l *opList) push(q *txQueue, o *op, n uint32) {
	l.posted++
	o.number = l.posted
	if l.count == 0 {
		l.first = n
	} else {
		q.ops[l.last].next, o.prev = n, l.last
	}
	l.last = n
	l.count++
}

func (l *opList) remove(q *txQueue, o *op) {
	if o.prev != noOp {
		q.ops[o.prev].next = o.next
	} else {
		l.first = o.next
	}
	if o.next != noOp {
		q.ops[o.next].prev = o.prev
	} else {
		l.last = o.prev
	}
	l.count--
}

// ended reports whether all operations up to number have.
func (l *opList) ended(q *txQueue, number uint64) bool {
	return l.count == 0 || q.ops[l.first].number > number
}
