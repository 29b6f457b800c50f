package note

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
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

// Owner is the post that a notification belongs to.
type Owner interface {
	// NoteEnded takes in that the notification has ended: it is out, or at the receiver with Outgoing.Ack, or
	// failed. Called by any thread, without a lock.
	NoteEnded(status fi.Errno)
}

// Outgoing is a notification to be sent. Its exported fields are immutable from Add on, the others are guarded by
// Outbox.mu, but for what is said at the field.
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
}

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

// Outbox are the notifications of an endpoint that have not ended. The lock is taken for short times by posting
// threads, by threads that end a post, and by the lease holder. A thread that has the lock takes no lease.
type Outbox struct {
	notes  *Notes
	mu     sync.Mutex
	agent  []byte
	bytes  uint64 // cost of all that are queued
	queues map[Peer]*queue
	byID   map[uint64]*queue // by stream
	ready  []*queue          // of which something may go
}

// ended is one that has ended, for its owner, without the lock.
type ended struct {
	n      *Outgoing
	peer   Peer
	status fi.Errno
}

// SetAgent sets the name that later notifications carry, at most AgentLongest bytes.
func (o *Outbox) SetAgent(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.agent = []byte(name)
	for _, q := range o.queues {
		lockStream(q.line)
		o.name(q.line)
		unlockStream(q.line)
	}
}

// Add enters a notification of at most Longest bytes as the last to a peer; the bytes are the caller's again.
// fi.EAGAIN: too many wait, which does not count if it must.
func (o *Outbox) Add(n *Outgoing, p Peer, note []byte, must bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !must && o.bytes != 0 && o.bytes+wire.NoticeCost+uint64(len(note)) > o.notes.bound {
		return fi.EAGAIN
	}
	n.bytes = append(append(make([]byte, 0, len(o.agent)+len(note)), o.agent...), note...)
	n.head = wire.Notice{
		Op: uint8(n.Op), Tag: n.Tag, Ack: n.Ack, Agent: uint8(len(o.agent)), Length: uint32(len(n.bytes)),
	}
	q := o.queues[p]
	if q == nil {
		q = o.newQueue(p, nil)
	}
	if len(q.list) == 0 {
		q.shut()
	}
	q.list, n.queue = append(q.list, n), q
	o.bytes += n.cost()
	p.Count(1) // fences wait for it, and the link stays
	return nil
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
	o.mu.Lock()
	defer o.mu.Unlock()
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
	o.bytes -= q.list[i].cost()
	q.list[i].queue = nil
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

// Settle takes in that what comes before a notification in its post has ended, with a status, and sends it if it can
// go.
func (o *Outbox) Settle(n *Outgoing, status fi.Errno) {
	var ends []ended
	o.mu.Lock()
	n.ready, n.head.Status = true, uint16(status)
	if q := n.queue; q != nil {
		if status == fi.Success {
			status = n.lost
		}
		if n.lost != fi.Success || status != fi.Success && !n.OnError {
			o.drop(q, slices.Index(q.list, n))
			ends = append(ends, ended{n, q.peer, status})
		}
		ends = o.advance(q, ends)
	}
	o.mu.Unlock()
	o.finish(ends)
}

// pump sends what waited. The caller holds the lease.
func (o *Outbox) pump() {
	o.mu.Lock()
	list := o.ready
	o.ready = nil
	var ends []ended
	for _, q := range list {
		q.listed = false
		ends = o.advance(q, ends)
	}
	o.mu.Unlock()
	o.finish(ends)
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
	var ends []ended
	o.mu.Lock()
	q := o.byID[stream]
	if q == nil { // of a connection that is gone
		o.mu.Unlock()
		return
	}
	lockStream(q.line)
	sent := q.line.Sent
	unlockStream(q.line)
	if !e.Owns(src, q.peer.Number()) || w.B > sent {
		o.mu.Unlock()
		e.Malformed(src, "credit of a stream that is not its own, or for what was not sent")
		return
	}
	lockStream(q.line)
	if w.A > q.line.Limit {
		q.line.Limit, q.asked = w.A, false
	}
	unlockStream(q.line)
	for len(q.unacked) != 0 && q.unacked[0].end <= w.B {
		ends = append(ends, ended{q.unacked[0], q.peer, fi.Success})
		q.unacked[0] = nil
		q.unacked = q.unacked[1:]
	}
	o.wake(q)
	o.mu.Unlock()
	o.finish(ends)
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
		o.bytes -= n.cost()
		n.queue = nil
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
	o.mu.Lock()
	var ends []ended
	if q := o.queues[p]; q != nil {
		ends = o.lose(q, status, nil)
	}
	o.mu.Unlock()
	o.finish(ends)
}

// Cancel ends with fi.ECANCELED a notification of a context that is settled and of which nothing is sent, and reports
// whether there is one.
func (o *Outbox) Cancel(context uint64) bool {
	o.mu.Lock()
	for _, q := range o.queues {
		for i, n := range q.list {
			if n.ready && n.head.Offset == 0 && n.Context == context {
				o.drop(q, i)
				o.wake(q)
				o.mu.Unlock()
				o.finish([]ended{{n, q.peer, fi.ECANCELED}})
				return true
			}
		}
	}
	o.mu.Unlock()
	return false
}

// finish gives what has ended to its owners.
func (o *Outbox) finish(ends []ended) {
	for i := range ends {
		end := &ends[i]
		end.peer.Count(-1)
		end.n.Owner.NoteEnded(end.status)
	}
}
