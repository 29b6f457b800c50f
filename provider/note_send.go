package provider

import (
	"math/rand/v2"
	"slices"
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/wire"
)

// Notifications, the sender's side. Each receiver has a queue, in the order of the posts. A notification
// goes out when all elements of its post have ended, those before it are out, and the receiver has room:
//
//	posted → (elements end) → ready → (credit, room in the ring) → sent → (arrived, if asked for) → completed
//
// A write with a notification has its elements performed by the time that they end (fi.DeliveryComplete), so
// no order of ways or flows matters. The bytes are copied by the post.

// noteOut is a notification to be sent. It is guarded by noteOutbox.mu, but for what is said at the field.
type noteOut struct {
	op      *listOp // whose notification it is, nil: none's; immutable
	context uint64  // of one that is alone
	flags   uint64  // of the post
	bytes   []byte  // the sender's name for itself, and the notification; immutable
	head    wire.Notice
	queue   *noteQueue // where it waits, nil: nowhere
	ready   bool
	lost    fi.Errno // why it is not to be sent, when its elements have ended; fi.Success: it is
	end     uint64   // the stream's cost with it, once it is sent
}

func (n *noteOut) cost() uint64 { return wire.NoticeCost + uint64(len(n.bytes)) }

// noteQueue is what goes to one receiver over one connection. It is guarded by noteOutbox.mu.
type noteQueue struct {
	link    *link
	stream  uint64
	line    *hot.NoteOut // with what both ends count; under its own lock too
	list    []*noteOut
	unacked []*noteOut // that are sent, and complete when they have arrived
	asked   bool       // for more, and it has not come
	listed  bool       // in noteOutbox.ready
}

// noteOutbox are the notifications of an endpoint that have not ended. The lock is taken for short times by posting
// threads, by threads that end a post, and by the lease holder. A thread that has the lock takes no lease.
type noteOutbox struct {
	ep     *Endpoint
	mu     sync.Mutex
	agent  []byte
	bytes  uint64 // cost of all that are queued
	queues map[*link]*noteQueue
	byID   map[uint64]*noteQueue // by stream
	ready  []*noteQueue          // of which something may go
}

// noteEnd is one that has ended, to be completed without the lock.
type noteEnd struct {
	n      *noteOut
	link   *link
	status fi.Errno
}

// SetAgent gives the endpoint a name that its notifications carry, at most MaxAgent bytes. Later posts have it.
// fi.EINVAL: it is too long.
func (e *Endpoint) SetAgent(name string) error {
	if len(name) > MaxAgent {
		return e.refuse(fi.EINVAL, "agent name of %d bytes, at most %d", len(name), MaxAgent)
	}
	o := &e.notes.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.agent = []byte(name)
	for _, q := range o.queues {
		lockStream(q.line)
		o.name(q.line)
		unlockStream(q.line)
	}
	return nil
}

// NotifyArgs describe a notification without a transfer.
type NotifyArgs struct {
	Dest    fi.Addr
	Tag     uint64
	Note    []byte // at most MaxNote bytes; the caller's again after the call
	Flags   uint64 // notifyFlags
	Context uint64
}

const notifyFlags = fi.Completion | fi.More | fi.Fence | fi.Priority | fi.InjectComplete | fi.TransmitComplete | fi.DeliveryComplete

// Notify sends a notification that belongs to no transfer. It goes behind those of earlier posts to the
// same receiver. It completes, as a message (fi.Send|fi.Msg), when it is out; with fi.DeliveryComplete when
// the receiver holds it. Errors: fi.EOPBADSTATE for an endpoint that is not enabled; fi.ENOSYS for one that has
// no notifications; fi.EBADFLAGS; fi.EMSGSIZE for too many bytes; fi.EAGAIN while too many wait; those of
// Send about the peer.
func (e *Endpoint) Notify(a *NotifyArgs) error {
	switch {
	case e.state.Load() != stateEnabled:
		return fi.EOPBADSTATE
	case !e.notes.possible():
		return e.refuse(fi.ENOSYS, "notify: the endpoint has no notifications")
	case a.Flags&^notifyFlags != 0:
		return e.refuse(fi.EBADFLAGS, "notify: flags %#x are not for it", a.Flags&^notifyFlags)
	case len(a.Note) > MaxNote:
		return e.refuse(fi.EMSGSIZE, "notify: %d bytes, at most %d", len(a.Note), MaxNote)
	}
	l, p, err := e.peerFor(a.Dest, a.Flags)
	if err != nil {
		return err
	}
	defer l.release()
	if e.txCompletes(0, a.Flags) && !e.txCQ.Room(0) {
		return fi.EAGAIN
	}
	n := &noteOut{context: a.Context, flags: a.Flags, head: wire.Notice{Op: uint8(NoteAlone), Tag: a.Tag}}
	if err := e.notes.out.add(n, l, p, a.Note, false); err != nil {
		return err
	}
	e.notes.out.settle(n, fi.Success)
	e.domain.work.PostReady()
	return nil
}

// add enters a notification as the last of a link's. fi.EAGAIN: too many wait, which does not count if it must.
func (o *noteOutbox) add(n *noteOut, l *link, p *path, note []byte, must bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	bound := uint64(o.ep.domain.cfg.NoteBytes)
	if !must && o.bytes != 0 && o.bytes+wire.NoticeCost+uint64(len(note)) > bound {
		return fi.EAGAIN
	}
	n.bytes = append(append(make([]byte, 0, len(o.agent)+len(note)), o.agent...), note...)
	n.head.Agent, n.head.Length = uint8(len(o.agent)), uint32(len(n.bytes))
	n.head.Ack = n.flags&fi.DeliveryComplete != 0 || n.flags&fi.TransmitComplete != 0 &&
		p.port.attr.Caps&hw.CapDirectRing == 0
	q := o.queues[l]
	if q == nil {
		q = o.newQueue(l, nil)
	}
	if len(q.list) == 0 {
		q.shut()
	}
	q.list, n.queue = append(q.list, n), q
	o.bytes += n.cost()
	l.inFlight.Add(1) // fences wait for it, and the link stays
	return nil
}

// newQueue makes the queue of a link, of which some wait. The caller has o.mu.
func (o *noteOutbox) newQueue(l *link, waiting []*noteOut) *noteQueue {
	q := &noteQueue{link: l, stream: rand.Uint64(), list: waiting}
	q.line = o.streamTo(l, q.stream)
	unlockStream(q.line)
	o.queues[l], o.byID[q.stream] = q, q
	return q
}

// take takes back a notification that add has just entered, whose post is refused.
func (o *noteOutbox) take(n *noteOut, l *link) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q := o.queues[l]; q != nil {
		if i := slices.Index(q.list, n); i >= 0 {
			o.drop(q, i)
			l.inFlight.Add(-1)
			o.wake(q)
		}
	}
}

// drop takes the i-th notification out of a queue.
func (o *noteOutbox) drop(q *noteQueue, i int) {
	o.bytes -= q.list[i].cost()
	q.list[i].queue = nil
	if i != 0 {
		q.list = slices.Delete(q.list, i, i+1)
		return
	}
	q.list[0] = nil
	q.list = q.list[1:]
}

// settle takes in that what comes before a notification has ended, and sends it if it can go.
func (o *noteOutbox) settle(n *noteOut, status fi.Errno) {
	var ends []noteEnd
	o.mu.Lock()
	n.ready, n.head.Status = true, uint16(status)
	if q := n.queue; q != nil {
		if status == fi.Success {
			status = n.lost
		}
		if n.lost != fi.Success || status != fi.Success && !n.op.args.NoteOnError {
			o.drop(q, slices.Index(q.list, n))
			ends = append(ends, noteEnd{n, q.link, status})
		}
		ends = o.advance(q, ends)
	}
	o.mu.Unlock()
	o.finish(ends)
}

// pump sends what waited. The caller holds the lease.
func (o *noteOutbox) pump() {
	o.mu.Lock()
	list := o.ready
	o.ready = nil
	var ends []noteEnd
	for _, q := range list {
		q.listed = false
		ends = o.advance(q, ends)
	}
	o.mu.Unlock()
	o.finish(ends)
}

// wake has progress serve a queue. The caller has o.mu.
func (o *noteOutbox) wake(q *noteQueue) {
	if !q.listed && len(q.list) != 0 {
		q.listed = true
		o.ready = append(o.ready, q)
	}
	if q.listed {
		o.ep.notes.notify()
	}
}

// advance sends what can go of a queue, and appends what has ended. The caller has o.mu.
func (o *noteOutbox) advance(q *noteQueue, ends []noteEnd) []noteEnd {
	for len(q.list) != 0 && q.list[0].ready {
		n := q.list[0]
		out, err := o.send(q, n)
		if err == fi.EAGAIN {
			o.wake(q)
			return ends
		}
		if err != nil {
			return o.lose(q, fi.ErrnoOf(err), ends)
		}
		if !out {
			return ends // until there is credit
		}
		o.drop(q, 0)
		if n.head.Ack && n.head.Status == 0 {
			q.unacked = append(q.unacked, n)
			continue
		}
		ends = append(ends, noteEnd{n, q.link, fi.Errno(n.head.Status)})
	}
	if len(q.list) == 0 {
		q.open()
	}
	return ends
}

// send sends what is left of a notification, as far as there is room, and reports whether that is all. fi.EAGAIN:
// the rest is to be tried again. The caller has o.mu.
func (o *noteOutbox) send(q *noteQueue, n *noteOut) (all bool, err error) {
	e := o.ep
	p, err := e.connect(q.link)
	if err != nil {
		return false, err
	}
	p.port.wake()
	lockStream(q.line)
	defer unlockStream(q.line)
	if n.head.Offset == 0 && q.line.Sent+n.cost() > q.line.Limit {
		return false, o.ask(q, p)
	}
	lease, ok := e.stripes.Acquire(0)
	if !ok {
		return false, fi.EAGAIN
	}
	defer e.stripes.Release(lease)
	sc := &e.scratch[lease]
	n.head.Start = q.line.Sent
	for {
		part := n.bytes[n.head.Offset:]
		part = part[:min(len(part), p.port.attr.MaxAMBcopy)]
		iov := append(sc.frag[:0], fi.IOVec{Base: uintptr(unsafe.Pointer(unsafe.SliceData(part))), Len: uint64(len(part))})
		if err := e.sendPayload(p, wire.AMNotice, q.stream, n.head.Put(sc.head[:]), iov, len(part),
			lease); err != nil {
			return false, e.broken(err)
		}
		if n.head.Offset += uint32(len(part)); int(n.head.Offset) == len(n.bytes) {
			e.stats.Shared(stats.SharedNote, 1)
			q.line.Sent += n.cost()
			n.end = q.line.Sent
			return true, nil
		}
	}
}

// ask asks the receiver for room, once. The caller has o.mu and the stream's lock.
func (o *noteOutbox) ask(q *noteQueue, p *path) error {
	if q.asked {
		return nil
	}
	w := wire.NoticeWords{Kind: wire.NoticeAsk, A: q.line.Sent + q.list[0].cost()}
	w.B = w.A
	for _, n := range q.list[1:] {
		if w.B+n.cost()-w.A > wire.NoticeWant {
			break
		}
		w.B += n.cost()
	}
	var b [wire.NoticeWordsBytes]byte
	if err := sendError(p.AMShort(wire.AMNotice, q.stream, w.Put(b[:]), nil)); err != nil {
		return o.ep.broken(err)
	}
	q.asked = true
	return nil
}

// credit takes in what a receiver grants.
func (o *noteOutbox) credit(e *leasedEP, src hw.Source, stream uint64, w *wire.NoticeWords) {
	var ends []noteEnd
	o.mu.Lock()
	q := o.byID[stream]
	if q == nil { // of a connection that is gone
		o.mu.Unlock()
		return
	}
	lockStream(q.line)
	sent := q.line.Sent
	unlockStream(q.line)
	if !e.ownsLink(src, q.link.index) || w.B > sent {
		o.mu.Unlock()
		e.malformed(src, "credit of a stream that is not its own, or for what was not sent")
		return
	}
	lockStream(q.line)
	if w.A > q.line.Limit {
		q.line.Limit, q.asked = w.A, false
	}
	unlockStream(q.line)
	for len(q.unacked) != 0 && q.unacked[0].end <= w.B {
		ends = append(ends, noteEnd{q.unacked[0], q.link, fi.Success})
		q.unacked[0] = nil
		q.unacked = q.unacked[1:]
	}
	o.wake(q)
	o.mu.Unlock()
	o.finish(ends)
}

// lose ends all of a queue. The caller has o.mu.
func (o *noteOutbox) lose(q *noteQueue, status fi.Errno, ends []noteEnd) []noteEnd {
	for _, n := range q.unacked {
		ends = append(ends, noteEnd{n, q.link, status})
	}
	waiting := q.list[:0:0]
	for _, n := range q.list {
		if !n.ready { // its elements end, and then it does
			n.lost = status
			waiting = append(waiting, n)
			continue
		}
		o.bytes -= n.cost()
		n.queue = nil
		ends = append(ends, noteEnd{n, q.link, status})
	}
	delete(o.byID, q.stream)
	delete(o.queues, q.link)
	endStream(q.line)
	if len(waiting) != 0 {
		next := o.newQueue(q.link, waiting)
		for _, n := range waiting {
			n.queue = next
		}
	}
	q.list, q.unacked = nil, nil
	return ends
}

// linkLost ends the notifications to a peer that is gone. The caller holds the lease.
func (o *noteOutbox) linkLost(l *link, status fi.Errno) {
	o.mu.Lock()
	var ends []noteEnd
	if q := o.queues[l]; q != nil {
		ends = o.lose(q, status, nil)
	}
	o.mu.Unlock()
	o.finish(ends)
}

// cancel takes back a notification that nothing of is sent, and reports whether there is one of a context whose
// elements have ended.
func (o *noteOutbox) cancel(context uint64) bool {
	o.mu.Lock()
	for _, q := range o.queues {
		for i, n := range q.list {
			if n.ready && n.head.Offset == 0 && n.contextOf() == context {
				o.drop(q, i)
				o.wake(q)
				o.mu.Unlock()
				o.finish([]noteEnd{{n, q.link, fi.ECANCELED}})
				return true
			}
		}
	}
	o.mu.Unlock()
	return false
}

func (n *noteOut) contextOf() uint64 {
	if n.op != nil {
		return n.op.args.Context
	}
	return n.context
}

// finish completes what has ended.
func (o *noteOutbox) finish(ends []noteEnd) {
	for i := range ends {
		end := &ends[i]
		end.link.inFlight.Add(-1)
		if op := end.n.op; op != nil {
			op.complete(end.status)
			continue
		}
		o.ep.completeNotify(end.n, end.status)
	}
}

// completeNotify completes a notification that is alone.
func (e *Endpoint) completeNotify(n *noteOut, status fi.Errno) {
	entry := txEntry(n.context, false)
	switch {
	case status != fi.Success:
		e.countFailed(status)
		if e.txCQ != nil {
			e.txCQ.CompleteError(entry, cq.ErrorInfo{Err: status})
		}
	case e.txCompletes(0, n.flags):
		e.txCQ.Complete(entry)
	}
	e.countEnd(e.txCntr.Load(), 0, n.flags&fi.Completion != 0, status != fi.Success,
		uint64(len(n.bytes))-uint64(n.head.Agent))
}
