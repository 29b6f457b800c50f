package cxi

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/mem"
)

// softMessage is an unexpected message that the NIC keeps no longer, or never kept.
type softMessage struct {
	ev      nic.Kept // of its removal, or of its arrival in a buffer of the request list
	payload []byte   // its first bytes
	pooled  bool     // payload is of the pool (soft.store)
	ready   bool     // they are there
	source  uint64   // where the rest is at the sender
}

// softMatch is one that has found its receive.
type softMatch struct {
	r      *receive
	s      *softMessage
	offset uint64
}

// soft is what software matches: messages that the NIC keeps no longer or never kept, and receives, once software
// matches all. Everything is under the receiver's lock, but for local and pool.
type soft struct {
	x       *matchRx
	engines [2]*match.Engine // for untagged and tagged messages
	// messages are those that are in an engine, by the number in their Payload there; unused are numbers without one.
	messages []*softMessage
	unused   []uint64
	// short are messages for which an engine had no memory, in order. As long as there are any nothing is posted.
	short []*softMessage

	// pool has the first bytes of messages that wait, off the Go heap: taking over what the NIC keeps is not to have
	// the collector run, for which threads that enter the runtime may have to sleep. Lease.
	pool *mem.Pool

	matches []softMatch
	found   []hw.MatchEvent // searches
	// local says that matches or found is not empty, or that receives were cancelled. Stored under the lock, read by
	// the lease holder and Pending.
	local atomic.Bool
}

func (q *soft) open(x *matchRx) (err error) {
	q.x, q.pool = x, mem.NewPool(softIdle)
	for k := range q.engines {
		if q.engines[k], err = match.New(); err != nil {
			return err
		}
	}
	return nil
}

func (q *soft) close() (err error) {
	for _, e := range q.engines {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}
	if q.pool != nil {
		err = errors.Join(err, q.pool.Close())
	}
	return err
}

// softIdle is how many bytes of memory for messages stay when none waits.
const softIdle = 1 << 20

// store gives a message a copy of its first bytes. Lease.
func (q *soft) store(s *softMessage, b []byte) {
	s.payload, s.pooled = nil, false
	if n := len(b); n > 0 && n <= mem.MaxShared {
		if at, err := q.pool.Get(n); err == nil {
			s.payload, s.pooled = mem.Bytes(at, n), true
			copy(s.payload, b)
			return
		}
	}
	s.payload = slices.Clone(b)
}

// spend gives the bytes of a message back that has been delivered. Lease.
func (q *soft) spend(s *softMessage) {
	if s.pooled {
		q.pool.Put(mem.Address(s.payload), len(s.payload))
		s.payload, s.pooled = nil, false
	}
}

// Numbers of senders in the engines: PID and NIC without the bits between them that no match id has.
const (
	softNID     = 1<<softNIDBits - 1
	softNIDBits = 20
)

// sender is a sender as the engines number it.
func (q *soft) sender(id uint32) uint32 {
	return id>>(32-q.x.m.pidBits)<<softNIDBits | id&softNID
}

// engine is the one for messages with or without a tag.
func (q *soft) engine(tagged bool) *match.Engine {
	if tagged {
		return q.engines[1]
	}
	return q.engines[0]
}

// wants is what a receive or search matches, and the engine for it.
func (q *soft) wants(e *nic.Entry) (engine *match.Engine, sender uint32, tag, ignore uint64) {
	sender = match.AnySource
	if e.MatchID != nic.AnyID() {
		sender = q.sender(e.MatchID)
	}
	says := proto.MessageOf(e.MatchBits)
	return q.engine(says.Tagged), sender, says.Tag, e.Ignore & proto.TagMask
}

// count is the number of messages that wait for a receive.
func (q *soft) count() int {
	return q.engines[0].Unexpected() + q.engines[1].Unexpected() + len(q.short)
}

// keep holds a message for a receive that comes later.
func (q *soft) keep(s *softMessage) {
	if len(q.short) > 0 || !q.hold(s) {
		q.short = append(q.short, s)
		q.x.retries.Store(true)
	}
}

// hold does so, unless there is no memory.
func (q *soft) hold(s *softMessage) bool {
	ev := s.ev.Event()
	says := proto.MessageOf(ev.MatchBits())
	e := q.engine(says.Tagged)
	m := e.Hold(q.sender(ev.Initiator()), says.Tag)
	if m == nil {
		q.x.m.i.logf("an unexpected message waits for memory: %v", e.Err())
		return false
	}
	if len(q.unused) == 0 {
		q.messages = append(q.messages, nil)
		q.unused = append(q.unused, uint64(len(q.messages)-1))
	}
	last := len(q.unused) - 1
	m.Payload, q.unused = q.unused[last], q.unused[:last]
	q.messages[m.Payload] = s
	return true
}

// retry holds messages for which there was no memory.
func (q *soft) retry() {
	for len(q.short) > 0 && q.hold(q.short[0]) {
		q.short = q.short[1:]
	}
}

// out is a message that an engine has given out, which it forgets.
func (q *soft) out(e *match.Engine, m *match.Message) *softMessage {
	s := q.messages[m.Payload]
	q.messages[m.Payload] = nil
	q.unused = append(q.unused, m.Payload)
	e.ReleaseMessage(m)
	return s
}

// take takes the first message that an entry takes, nil: there is none.
func (q *soft) take(entry *nic.Entry) *softMessage {
	e, sender, tag, ignore := q.wants(entry)
	if m := e.Take(sender, tag, ignore); m != nil {
		return q.out(e, m)
	}
	return nil
}

// give gives a receive a message, which progress delivers, and reports whether it takes no more.
func (q *soft) give(r *receive, s *softMessage) (spent bool) {
	q.matches = append(q.matches, softMatch{r, s, r.start})
	q.local.Store(true)
	spent = true
	if r.multi {
		ev := s.ev.Event()
		room := r.room - r.start
		r.start += min(uint64(ev.Wanted()), room)
		spent = r.room-r.start < uint64(r.entry.MinFree)
	}
	if spent {
		r.taken, r.unlinked, r.total = true, true, r.start
	}
	return spent
}

// match gives a receive that is posted nowhere yet the messages that wait, and reports whether it takes no more.
func (q *soft) match(r *receive) (spent bool) {
	for !spent {
		s := q.take(&r.entry)
		if s == nil {
			break
		}
		spent = q.give(r, s)
	}
	r.skip = r.start
	return spent
}

// post posts a receive: it gets messages that wait, and those that come. False: there is no memory.
func (q *soft) post(r *receive) bool {
	e, sender, tag, ignore := q.wants(&r.entry)
	if !r.multi {
		p, m := e.Post(sender, tag, ignore)
		switch {
		case m != nil:
			q.give(r, q.out(e, m))
		case p != nil:
			p.Context, r.posted = uint64(r.id), p
		}
		return m != nil || p != nil
	}
	p := e.Queue(sender, tag, ignore)
	if p == nil {
		return false
	}
	p.SetKeep(true)
	p.Context, r.posted = uint64(r.id), p
	if q.match(r) {
		q.withdraw(r)
	}
	return true
}

// withdraw ends a receive that is posted, as far as matching goes.
func (q *soft) withdraw(r *receive) {
	e, _, _, _ := q.wants(&r.entry)
	e.Remove(r.posted)
	e.Release(r.posted)
	r.posted = nil
}

// arrive gives a message to the receive that was posted first of those that match. False: there is none.
func (q *soft) arrive(s *softMessage) bool {
	ev := s.ev.Event()
	says := proto.MessageOf(ev.MatchBits())
	p := q.engine(says.Tagged).Arrive(q.sender(ev.Initiator()), says.Tag)
	if p == nil {
		return false
	}
	r := q.x.receive(uint32(p.Context))
	if q.give(r, s) {
		q.withdraw(r)
	}
	return true
}

// search answers a search, which may set aside what it finds, with a message that waits. False: there is none.
func (q *soft) search(r *receive) bool {
	e, sender, tag, ignore := q.wants(&r.entry)
	m := e.Peek(sender, tag, ignore)
	if m == nil {
		return false
	}
	s := q.messages[m.Payload]
	ev := hw.MatchEvent{Kind: hw.MatchFound, Context: r.context, Last: true}
	q.x.describe(&ev, s.ev.Event())
	if r.claim {
		e.RemoveMessage(m)
		ev.Claim = q.x.flow.setAside(q.out(e, m))
	}
	q.answer(r, &ev)
	return true
}

// missing answers a search that finds nothing.
func (q *soft) missing(r *receive) {
	q.answer(r, &hw.MatchEvent{Kind: hw.MatchMissing, Context: r.context, Last: true})
}

func (q *soft) answer(r *receive, ev *hw.MatchEvent) {
	q.found = append(q.found, *ev)
	q.local.Store(true)
	q.x.freeID(r)
}

// deliver gives receives the messages that were matched with them, and hands out what searches have found. It returns
// how many that were. Lease; it takes the lock.
func (q *soft) deliver() int {
	x := q.x
	if !q.local.Load() {
		return 0
	}
	x.lock.take()
	matches, found := q.matches, q.found
	q.matches, q.found = nil, nil
	q.local.Store(false)
	x.lock.give()
	for k := range found {
		x.say(&found[k])
	}
	for _, m := range matches {
		e := m.s.ev.Event()
		a := x.begin(m.r, e.Initiator(), e.RendezvousID(), e.Rendezvous(), seenTaken)
		x.fill(a, e, m.offset)
		copy(m.r.into()[a.ev.Offset:], m.s.payload[:min(uint64(len(m.s.payload)), a.ev.Length)])
		eager := uint32(len(m.s.payload))
		q.spend(m.s)
		if !e.Rendezvous() {
			x.matched(a, e.MatchBits())
			continue
		}
		a.eager, a.source = eager, m.s.source
		a.needs = seenPut | seenReply
		x.get(a)
		x.step(a, seenTaken|seenPut)
	}
	x.flow.counts.matched.Add(uint64(len(matches)))
	return len(matches) + len(found)
}
