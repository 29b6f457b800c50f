package note

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/handover"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// The sender's side. Each receiver has a queue, in the order of the posts. A notification goes out when all before it
// in its post have ended, those of earlier posts are out, and the receiver has room:
//
//	Add → (elements end) → Settle → (credit, room in the ring) → sent → (arrived, if asked for) → NoteEnded
//
// A write with a notification has its elements performed by the time that they end (fi.DeliveryComplete), so no order
// of ways or flows matters. The bytes are copied by Add.
//
// No thread that posts, or ends a post, waits for another: it leaves what it does as a step to the thread that is at
// the notifications, which it is itself if no other is (package handover). The order of posts is that of their steps.
// While another thread is there posts of one thread may complete in another order than that in which they were posted:
// it ends what it has settled when it has given the lock back, and a later post by then may end. While a notification
// of a stream is added and has not left, the data plane sends none there (hot.NoteOut.Waiting).

// Owner is the post that a notification belongs to.
type Owner interface {
	// NoteEnded takes in that the notification has ended: it is out, or at the receiver with Outgoing.Ack, or
	// failed. Called by any thread, without a lock.
	NoteEnded(status fi.Errno)
}

// Outgoing is a notification to be sent. Its exported fields are immutable from Add on, the others are guarded by
// Outbox.mu from then on, but for what is said at the field.
type Outgoing struct {
	Owner   Owner
	Context uint64 // of the post, for Cancel
	Op      Op
	Tag     uint64
	Ack     bool // it ends when it has arrived
	OnError bool // it is sent when the post fails, too, with the post's error

	bytes []byte // the sender's name for itself, and the notification; immutable
	head  wire.Notice
	queue *queue // where it waits, nil: nowhere
	ready bool
	lost  fi.Errno // why it is not to be sent, when its post is ready; fi.Success: it is
	end   uint64   // the stream's cost with it, once it is sent

	line  *hot.NoteOut                         // where the data plane sees that it waits, nil: nowhere; immutable
	steps [stepsOfPost]handover.Node[noteStep] // of it: that it is added; and that it is settled, or taken back
}

// noteStep is what a post leaves to the thread that is at the notifications.
type noteStep struct {
	n      *Outgoing
	peer   Peer     // of one that is added or taken back
	status fi.Errno // of one that is settled
	does   stepOf
}

// stepOf is what a step is.
type stepOf uint8

const (
	stepAdd stepOf = iota
	stepSettle
	stepTake

	stepsOfPost = 2 // at most
)

func (n *Outgoing) cost() uint64 { return wire.NoticeCost + uint64(len(n.bytes)) }

// Len is the notification's bytes.
func (n *Outgoing) Len() uint64 { return uint64(len(n.bytes)) - uint64(n.head.Agent) }

// queue is what goes to one receiver over one connection. It is guarded by Outbox.mu.
type queue struct {
	peer    Peer
	stream  uint64
	line    *hot.NoteOut // with what both ends count; under its own lock too
	list    []*Outgoing
	unacked []*Outgoing // that are sent, and end when they have arrived
	asked   bool        // for more, and it has not come
	listed  bool        // in Outbox.ready
}

// Outbox are the notifications of an endpoint that have not ended. A thread that has the lock takes no lease.
type Outbox struct {
	notes *Notes
	agent atomic.Pointer[[]byte] // the endpoint's name for itself, nil: none. Stored by SetAgent, read by posts
	// bytes is the cost of all that are added and have not left. Added to by posts, taken off by the holder of mu;
	// sequentially consistent.
	bytes atomic.Uint64
	steps handover.Stack[noteStep] // which no thread has done

	// mu guards what follows. It is tried by threads that post and that end a post, and waited for by the lease holder
	// and by control operations, for short times.
	mu     sync.Mutex
	queues map[Peer]*queue
	byID   map[uint64]*queue // by stream
	ready  []*queue          // of which something may go
	doing  []noteStep        // room for steps
}

// ended is one that has ended, for its owner, without the lock.
type ended struct {
	n      *Outgoing
	peer   Peer
	status fi.Errno
}

// lock takes the lock, and does the steps that there are. ends are what has ended with them, for unlock.
func (o *Outbox) lock() (ends []ended) {
	o.mu.Lock()
	return o.catchUp(nil)
}

// unlock gives the lock back, with what has ended.
func (o *Outbox) unlock(ends []ended) {
	o.mu.Unlock()
	o.complete(ends)
	if o.steps.Any() {
		o.run()
	}
}

// leave leaves a step, and does what there is to be done unless another thread does it, or this one further up its
// stack.
func (o *Outbox) leave(at *handover.Node[noteStep], it noteStep) {
	at.It = it
	o.steps.Push(at)
	o.run()
}

// run does the steps that there are, unless another thread does.
func (o *Outbox) run() {
	for o.mu.TryLock() {
		ends := o.catchUp(nil)
		o.mu.Unlock()
		o.complete(ends)
		if !o.steps.Any() {
			return
		}
	}
}

// catchUp does the steps that there are, and appends what has ended. The caller has o.mu.
func (o *Outbox) catchUp(ends []ended) []ended {
	o.doing = o.steps.Take(o.doing[:0])
	for i := range o.doing {
		switch it := &o.doing[i]; it.does {
		case stepAdd:
			o.added(it.n, it.peer)
		case stepSettle:
			ends = o.settled(it.n, it.status, ends)
		default:
			o.taken(it.n, it.peer)
		}
	}
	clear(o.doing)
	return ends
}

// SetAgent sets the name that later notifications carry, at most AgentLongest bytes.
func (o *Outbox) SetAgent(name string) {
	agent := []byte(name)
	ends := o.lock()
	defer func() { o.unlock(ends) }()
	o.agent.Store(&agent)
	for _, q := range o.queues {
		lockStream(q.line)
		o.name(q.line)
		unlockStream(q.line)
	}
}

// agentNow is the endpoint's name for itself.
func (o *Outbox) agentNow() []byte {
	if agent := o.agent.Load(); agent != nil {
		return *agent
	}
	return nil
}

// Add enters a notification of at most Longest bytes as the last to a peer; the bytes are the caller's again.
// fi.EAGAIN: too many wait, which does not count if it must.
func (o *Outbox) Add(n *Outgoing, p Peer, note []byte, must bool) error {
	agent := o.agentNow()
	cost := wire.NoticeCost + uint64(len(agent)+len(note))
	for old := o.bytes.Load(); ; old = o.bytes.Load() {
		if !must && old != 0 && old+cost > o.notes.bound {
			return fi.EAGAIN
		}
		if o.bytes.CompareAndSwap(old, old+cost) {
			break
		}
	}
	n.bytes = append(append(make([]byte, 0, len(agent)+len(note)), agent...), note...)
	n.head = wire.Notice{
		Op: uint8(n.Op), Tag: n.Tag, Ack: n.Ack, Agent: uint8(len(agent)), Length: uint32(len(n.bytes)),
	}
	if n.line = o.notes.memory.lineOf(p); n.line != nil {
		atomic.AddUint32(&n.line.Waiting, 1)
	}
	p.Count(1) // fences wait for it, and the link stays
	o.leave(&n.steps[0], noteStep{n: n, peer: p, does: stepAdd})
	return nil
}

// added puts a notification into its queue. The caller has o.mu.
func (o *Outbox) added(n *Outgoing, p Peer) {
	q := o.queues[p]
	if q == nil {
		q = o.newQueue(p, nil)
	}
	if len(q.list) == 0 {
		q.shut()
	}
	q.list, n.queue = append(q.list, n), q
}

// left takes in that a notification is in no queue any more. The caller has o.mu.
func (o *Outbox) left(n *Outgoing) {
	o.bytes.Add(-n.cost())
	n.queue = nil
	if n.line != nil {
		atomic.AddUint32(&n.line.Waiting, ^uint32(0))
	}
}

// newQueue makes the queue of a link, of which some wait. The caller has o.mu.
func (o *Outbox) newQueue(p Peer, waiting []*Outgoing) *queue {
	q := &queue{peer: p, stream: rand.Uint64(), list: waiting}
	q.line = o.streamTo(p, q.stream)
	unlockStream(q.line)
	o.queues[p], o.byID[q.stream] = q, q
	return q
}

// Take takes back a notification that Add has just entered, whose post is refused.
func (o *Outbox) Take(n *Outgoing, p Peer) {
	o.leave(&n.steps[1], noteStep{n: n, peer: p, does: stepTake})
}

// taken takes a notification back. The caller has o.mu.
func (o *Outbox) taken(n *Outgoing, p Peer) {
	if q := o.queues[p]; q != nil {
		if i := slices.Index(q.list, n); i >= 0 {
			o.drop(q, i)
			p.Count(-1)
			o.wake(q)
		}
	}
}

// drop takes the i-th notification out of a queue. A queue of which only notifications that are lost were left ends.
func (o *Outbox) drop(q *queue, i int) {
	lost := q.list[i].lost != fi.Success
	o.left(q.list[i])
	if i != 0 {
		q.list = slices.Delete(q.list, i, i+1)
		return
	}
	q.list[0] = nil
	q.list = q.list[1:]
	if lost && len(q.list) == 0 {
		o.end(q)
	}
}

// end gives back what a queue of which nothing waits has. The caller has o.mu.
func (o *Outbox) end(q *queue) {
	delete(o.byID, q.stream)
	delete(o.queues, q.peer)
	endStream(q.line)
}

// Settle takes in that what comes before a notification in its post has ended, with a status, and has it sent if it can
// go.
func (o *Outbox) Settle(n *Outgoing, status fi.Errno) {
	o.leave(&n.steps[1], noteStep{n: n, status: status, does: stepSettle})
}

// settled sends a notification if it can go, and appends what has ended. The caller has o.mu.
func (o *Outbox) settled(n *Outgoing, status fi.Errno, ends []ended) []ended {
	n.ready, n.head.Status = true, uint16(status)
	q := n.queue
	if q == nil {
		return ends
	}
	if status == fi.Success {
		status = n.lost
	}
	if n.lost != fi.Success || status != fi.Success && !n.OnError {
		o.drop(q, slices.Index(q.list, n))
		ends = append(ends, ended{n, q.peer, status})
	}
	return o.advance(q, ends)
}

// pump sends what waited. The caller holds the lease.
func (o *Outbox) pump() {
	ends := o.lock()
	list := o.ready
	o.ready = nil
	for _, q := range list {
		q.listed = false
		ends = o.advance(q, ends)
	}
	o.unlock(ends)
}

// wake has progress serve a queue. The caller has o.mu.
func (o *Outbox) wake(q *queue) {
	if !q.listed && len(q.list) != 0 {
		q.listed = true
		o.ready = append(o.ready, q)
	}
	if q.listed {
		o.notes.notify()
	}
}

// advance sends what can go of a queue, and appends what has ended. The caller has o.mu.
func (o *Outbox) advance(q *queue, ends []ended) []ended {
	for len(q.list) != 0 && q.list[0].ready {
		n := q.list[0]
		out, err := o.send(q, n)
		if errors.Is(err, fi.EAGAIN) {
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
		ends = append(ends, ended{n, q.peer, fi.Errno(n.head.Status)})
	}
	if len(q.list) == 0 && o.byID[q.stream] == q { // else its entry may be another queue's
		q.open()
	}
	return ends
}

// send sends what is left of a notification, as far as there is room, and reports whether that is all. fi.EAGAIN:
// the rest is to be tried again. The caller has o.mu.
func (o *Outbox) send(q *queue, n *Outgoing) (all bool, err error) {
	e := o.notes.ep
	p, err := e.Connect(q.peer)
	if err != nil {
		return false, err
	}
	lockStream(q.line)
	defer unlockStream(q.line)
	if n.head.Offset == 0 && q.line.Sent+n.cost() > q.line.Limit {
		return false, o.ask(q, p)
	}
	n.head.Start = q.line.Sent
	for {
		part := n.bytes[n.head.Offset:]
		part = part[:min(len(part), p.MaxPart())]
		if err := e.Send(p, q.stream, &n.head, part); err != nil {
			return false, err
		}
		if n.head.Offset += uint32(len(part)); int(n.head.Offset) == len(n.bytes) {
			o.notes.stats.Shared(stats.SharedNote, 1)
			q.line.Sent += n.cost()
			n.end = q.line.Sent
			return true, nil
		}
	}
}

// ask asks the receiver for room, once. The caller has o.mu and the stream's lock.
func (o *Outbox) ask(q *queue, p Path) error {
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
	if err := o.notes.ep.Ask(p, q.stream, w); err != nil {
		return err
	}
	q.asked = true
	return nil
}

// credit takes in what a receiver grants.
func (o *Outbox) credit(e Leased, src hw.Source, stream uint64, w *wire.NoticeWords) {
	ends := o.lock()
	valid := true
	if q := o.byID[stream]; q != nil { // else of a connection that is gone
		if valid = q.grants(e, src, w); valid {
			for len(q.unacked) != 0 && q.unacked[0].end <= w.B {
				ends = append(ends, ended{q.unacked[0], q.peer, fi.Success})
				q.unacked[0] = nil
				q.unacked = q.unacked[1:]
			}
			o.wake(q)
		}
	}
	o.unlock(ends)
	if !valid {
		e.Malformed(src, "credit of a stream that is not its own, or for what was not sent")
	}
}

// grants enters what a receiver grants. False: it is not the stream's, or it grants what was not sent. The caller has
// o.mu.
func (q *queue) grants(e Leased, src hw.Source, w *wire.NoticeWords) bool {
	lockStream(q.line)
	defer unlockStream(q.line)
	if !e.Owns(src, q.peer.Number()) || w.B > q.line.Sent {
		return false
	}
	if w.A > q.line.Limit {
		q.line.Limit, q.asked = w.A, false
	}
	return true
}

// lose ends all of a queue. The caller has o.mu.
func (o *Outbox) lose(q *queue, status fi.Errno, ends []ended) []ended {
	for _, n := range q.unacked {
		ends = append(ends, ended{n, q.peer, status})
	}
	waiting := q.list[:0:0]
	for _, n := range q.list {
		if !n.ready { // its elements end, and then it does
			n.lost = status
			waiting = append(waiting, n)
			continue
		}
		o.left(n)
		ends = append(ends, ended{n, q.peer, status})
	}
	o.end(q)
	if len(waiting) != 0 {
		next := o.newQueue(q.peer, waiting)
		for _, n := range waiting {
			n.queue = next
		}
	}
	q.list, q.unacked = nil, nil
	return ends
}

// Lost ends the notifications to a peer that is gone. The caller holds the lease.
func (o *Outbox) Lost(p Peer, status fi.Errno) {
	ends := o.lock()
	if q := o.queues[p]; q != nil {
		ends = o.lose(q, status, ends)
	}
	o.unlock(ends)
}

// Cancel ends with fi.ECANCELED a notification of a context that is settled and of which nothing is sent, and reports
// whether there is one.
func (o *Outbox) Cancel(context uint64) bool {
	ends := o.lock()
	n := o.waiting(context)
	if n != nil {
		q := n.queue
		o.drop(q, slices.Index(q.list, n))
		o.wake(q)
		ends = append(ends, ended{n, q.peer, fi.ECANCELED})
	}
	o.unlock(ends)
	return n != nil
}

// waiting returns a notification of a context that is settled and of which nothing is sent, nil: there is none. The
// caller has o.mu.
func (o *Outbox) waiting(context uint64) *Outgoing {
	for _, q := range o.queues {
		for _, n := range q.list {
			if n.ready && n.head.Offset == 0 && n.Context == context {
				return n
			}
		}
	}
	return nil
}

// complete gives what has ended to its owners.
func (o *Outbox) complete(ends []ended) {
	for i := range ends {
		end := &ends[i]
		end.peer.Count(-1)
		end.n.Owner.NoteEnded(end.status)
	}
}
