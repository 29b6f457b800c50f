package cxi

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/seam"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
)

// C threads send short messages and take messages in by the functions of this file, which they call without the Go
// runtime (packages seam and direct): nothing here allocates, stores a pointer, sleeps or calls assembly. What that
// does not allow is left to Progress and to the methods of Endpoint, in the state in which it was found.

// drivenFunctions are what C and the data plane call.
var drivenFunctions = seam.Functions{Send: SendPath, Next: NextArrival, Take: TakeArrival, Flush: FlushCorked,
	Post: PostMatched, Matched: NextMatched, Rest: RingRest}

// driver is what an interface has for C. The zero driver is of one that C does not drive.
type driver struct {
	transport mem.Array[seam.Transport] // one
	// paths leads to no peer and no interface: the collector keeps it while peers live, and would keep them, too.
	paths *pathPool
	// corked says that commands may stand in queues without a doorbell. Set by the thread that leaves them, taken by
	// the one that rings; sequentially consistent.
	corked flag
	found  uint32 // lease: index of the sender of what next found
}

// maxPaths is how many peers C reaches at a time.
const maxPaths = 1 << 20

// open lets C drive the interface.
func (d *driver) open(i *Iface) (err error) {
	if d.transport, err = mem.NewSparseArray[seam.Transport](1); err != nil {
		return err
	}
	d.transport.At(0).Init(&drivenFunctions, unsafe.Pointer(i))
	d.paths = new(pathPool)
	return d.paths.open()
}

func (d *driver) close() {
	if d.paths != nil {
		_ = d.paths.memory.Free()
	}
	_ = d.transport.Free()
}

// openWatch lets a poll find by a few words that there is nothing, unless there are more queues than it reads.
func (i *Iface) openWatch() error {
	if i.driver.transport.Len() == 0 {
		return nil
	}
	words := []unsafe.Pointer{
		unsafe.Pointer(&i.driver.corked.v), unsafe.Pointer(&i.closed), unsafe.Pointer(&i.anyTodo),
		unsafe.Pointer(i.flushes.Count()), unsafe.Pointer(&i.rx.unlisted),
	}
	queues, matched := []*eventQueue{&i.rx.events}, []*eventQueue{}
	for _, q := range i.tx {
		words, queues = append(words, unsafe.Pointer(&q.anyCompleted)), append(queues, &q.events)
	}
	if m := i.match; m != nil {
		words = append(words, m.watched()...)
		queues, matched = append(queues, &m.rx.flow.events), append(matched, &m.rx.events)
		for _, t := range m.txs {
			matched = append(matched, &t.events)
		}
	}
	w := &i.driver.transport.At(0).Watch
	ok := w.Words(words...)
	for n, q := range append(queues, matched...) {
		next, event := q.Next()
		ok = ok && w.Queue(next, event, n >= len(queues))
	}
	if !ok {
		i.driver.pollAlways()
	}
	return nil
}

// pollAlways has each poll go through all there may be.
func (d *driver) pollAlways() {
	if d.transport.Len() != 0 {
		d.transport.At(0).Watch = hot.Watch{}
	}
}

// watched are words of which one is not 0 while progress has something to do that no event says.
func (m *matcher) watched() []unsafe.Pointer {
	words := []unsafe.Pointer{
		unsafe.Pointer(&m.rx.later), unsafe.Pointer(&m.rx.retries), unsafe.Pointer(&m.rx.soft.local),
		unsafe.Pointer(&m.shared.ended), unsafe.Pointer(&m.shared.controls), unsafe.Pointer(&m.rx.unrung),
	}
	for _, t := range m.txs {
		words = append(words, unsafe.Pointer(&t.unrung))
	}
	return words
}

// An atomic.Bool is a word that is 0 while it is false: a hot.Watch reads some.
var _ = [1]byte{}[unsafe.Sizeof(atomic.Bool{})-4]

// pathPool has the paths to peers, off the Go heap.
type pathPool struct {
	mu      sync.Mutex // peers that come and go only
	memory  mem.Growing[seam.Path]
	next    uint32 // of those never used; 0 leads nowhere
	free    []uint32
	resting []restingPath
}

// restingPath is a path that a thread may still post to.
type restingPath struct {
	path  uint32
	grace *hot.Grace
}

func (p *pathPool) open() (err error) {
	if err = p.memory.Reserve(maxPaths); err != nil {
		return err
	}
	if err = p.memory.Grow(1); err != nil {
		return errors.Join(err, p.memory.Free())
	}
	p.memory.At(0).Init(&drivenFunctions, nic.MaxInline)
	p.next = 1
	return nil
}

// attach gives a peer a path. It goes back when the collector finds that nothing leads to the peer any more.
func (p *pathPool) attach(e *Endpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resting = slices.DeleteFunc(p.resting, func(r restingPath) bool {
		over := r.grace.Over()
		if over {
			p.free = append(p.free, r.path)
		}
		return over
	})
	var n uint32
	switch {
	case len(p.free) > 0:
		n = p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
	case p.next < maxPaths && p.memory.Grow(int(p.next)+1) == nil:
		n = p.next
		p.next++
		p.memory.At(uint64(n)).Init(&drivenFunctions, nic.MaxInline)
	}
	e.path = p.memory.At(uint64(n))
	if n != 0 {
		e.path.SetPeer(unsafe.Pointer(e))
		runtime.AddCleanup(e, p.put, n)
	}
}

// put takes a path back to which the layer above leads no thread any more.
func (p *pathPool) put(n uint32) {
	order.Barrier()
	r := restingPath{n, hot.NewGrace()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resting = append(p.resting, r)
}

// restingPeer is a peer that is gone, while threads may be posting to it.
type restingPeer struct {
	e     *Endpoint
	grace *hot.Grace
}

// rest takes the peer's path from C, and keeps the peer until no thread is at it. The caller has i.mu.
func (i *Iface) rest(e *Endpoint) {
	if e.path == nil {
		return
	}
	e.path.SetPeer(nil)
	order.Barrier()
	i.resting = append(slices.DeleteFunc(i.resting, func(r restingPeer) bool { return r.grace.Over() }), restingPeer{e, hot.NewGrace()})
}

// HotTransport is what C drives.
func (i *Iface) HotTransport() *hot.Transport { return &i.driver.transport.At(0).Hot }

// HotPath is what C sends with.
func (e *Endpoint) HotPath() *hot.Path { return &e.path.Hot }

// Written is false: every message has an event, which rings the bell.
func (i *Iface) Written() bool { return false }

// Of messages in a row to one peer, since C has polled the transport, so many are rung for at once; and so many are
// corked at most.
const (
	inRow      = 4
	mostCorked = 16
)

// holds reports whether a message is left without a doorbell. The caller has the queue's lock.
func (e *Endpoint) holds(hold uint8) bool {
	q := e.q
	if polls := atomic.LoadUint32(&e.i.driver.transport.At(0).Watch.Polls); e.polls != polls {
		e.polls, e.row = polls, 0
	}
	e.row++
	if hold == hot.HoldNever || hold == hot.HoldInRow && e.row <= inRow || q.corked >= mostCorked {
		q.corked = 0
		return false
	}
	q.corked++
	return true
}

// SendPath sends a message over a path (seam.Functions).
func SendPath(path, message, bell, _ uintptr) uintptr {
	e := (*Endpoint)(seam.PathAt(path).Peer())
	if e == nil || !e.EagerOpen() {
		return hot.PathGo
	}
	m, q := seam.MessageAt(message), e.q
	if !q.lock.try() {
		return hot.PathGo
	}
	said := e.sendLocked(m)
	if said == hot.PathCorked {
		q.lock.keep()
	} else {
		q.lock.leave(seam.BellAt(bell))
	}
	return said
}

// sendLocked sends a message under the queue's lock.
func (e *Endpoint) sendLocked(m *hot.TransportMessage) uintptr {
	q, w := e.q, &e.w
	if e.failure.Load() != nil || !e.ready.Load() || e.fenced.Load() || !e.greeted || w.mode != flowing || w.refused || w.sent != w.tail ||
		uint32(m.ID) >= maxID {
		return hot.PathGo
	}
	s := w.claim(spare)
	if s == nil || !q.room() {
		return hot.PathFull // there are events to come
	}
	var head, payload []byte
	if m.HeadBytes != 0 {
		head = seam.Bytes(m.Head, uint32(m.HeadBytes))
	}
	if m.Length != 0 {
		payload = seam.Bytes(m.Payload, m.Length)
	}
	s.fill(hw.AMID(m.ID), m.Header, head, payload, kindUser, w.tail)
	w.tail++
	e.emit() // there is room
	if e.holds(m.Hold) {
		return hot.PathCorked
	}
	return hot.PathSent
}

// FlushCorked rings for what is corked in one of the queues, and reports whether there may be more (seam.Functions).
func FlushCorked(transport, bell, _, _ uintptr) uintptr {
	i := (*Iface)(seam.TransportAt(transport).Iface())
	if i.ringOne(seam.BellAt(bell)) {
		return 1
	}
	return 0
}

// ringOne has C ring for one queue. False: nothing is corked.
func (i *Iface) ringOne(b *seam.Bell) bool {
	if !i.driver.corked.take() {
		return false
	}
	for _, q := range i.tx {
		if !q.lock.try() {
			continue
		}
		found := q.q.Waiting()
		if found {
			i.driver.corked.set() // other queues may have some
			q.corked = 0
		}
		q.lock.leave(b)
		if found {
			return true
		}
	}
	return false
}

// ringAll rings for all that is corked.
func (i *Iface) ringAll() {
	if i.driver.corked.take() {
		for _, q := range i.tx {
			q.take()
			q.give()
		}
	}
}

// NextArrival polls for a message, after what has become of those that were sent (seam.Functions). Lease.
func NextArrival(transport, message, bell, _ uintptr) uintptr {
	p, b := seam.TransportAt(transport), seam.BellAt(bell)
	i := (*Iface)(p.Iface())
	if p.Watch.Calm() {
		return hot.TransportEmpty
	}
	if i.ringOne(b) {
		return seam.Again
	}
	if i.match != nil { // what the NIC matches is Progress's
		return hot.TransportGo
	}
	if i.closed.Load() || i.anyTodo.Load() || i.flushes.Any() {
		return hot.TransportGo
	}
	for _, q := range i.tx {
		if found := q.takeIn(b); found != hot.TransportEmpty {
			return found
		}
	}
	return i.rx.next(seam.MessageAt(message), b)
}

// takeIn takes in what became of messages. hot.TransportEmpty: there is nothing more; hot.TransportGo: there is
// something that Progress has to deal with. Lease.
func (q *txQueue) takeIn(b *seam.Bell) uintptr {
	if q.anyCompleted.Load() {
		return hot.TransportGo
	}
	if q.posted.load() == 0 || !q.events.Waiting() || !q.lock.try() {
		return hot.TransportEmpty
	}
	for e := q.events.PeekAny(); e.There(); e = q.events.PeekAny() {
		if !q.plain(e) {
			q.events.Pause()
			q.lock.leave(b)
			if b.Word != 0 {
				return seam.Again
			}
			return hot.TransportGo
		}
		if q.events.Free(e) {
			word, value := q.events.Due()
			b.Ring(word, value, q.events.Lock())
			q.events.Pause()
			q.lock.keep() // the one doorbell is taken
			return seam.Again
		}
	}
	q.lock.leave(b)
	if b.Word != 0 {
		return seam.Again
	}
	return hot.TransportEmpty
}

// plain takes in the event of a message's arrival, for which no caller waits. False: it does not, and nothing
// is changed.
func (q *txQueue) plain(e nic.Event) bool {
	cookie := e.UserPtr()
	if e.Type() != wire.EventAck || e.Code() != wire.RcOk || cookie&cookieOp != 0 {
		return false
	}
	p := q.i.peer(uint32(cookie >> 16))
	if p == nil || !p.acceptPlain(uint16(cookie)) {
		return false
	}
	q.posted.add(-1)
	return true
}

// next returns the first event.
func (r *receiver) next(m *hot.TransportMessage, b *seam.Bell) uintptr {
	if r.unlisted > 0 {
		if !r.listAt.IsZero() {
			return hot.TransportGo
		}
		if r.append(); r.portal.q.Waiting() {
			word, value := r.portal.q.Due()
			b.Ring(word, value, nil)
			return seam.Again
		}
	}
	ev := r.events.PeekAny()
	if !ev.There() {
		return hot.TransportEmpty
	}
	if ev.Type() != wire.EventPut || ev.Code() != wire.RcOk {
		return hot.TransportGo
	}
	n, off, ok := r.place(ev)
	am, head, kind, pos := splitLow(uint32(ev.MatchBits()))
	if !ok || kind != kindUser || uint32(head) > ev.Length() || ev.Wanted() > ev.Length() {
		return hot.TransportGo
	}
	e := r.i.ids.Load().find(ev.Initiator())
	if e == nil || e.failure.Load() != nil || pos != e.lease.next {
		return hot.TransportGo
	}
	r.i.driver.found = e.index
	at := uintptr(r.memory.first) + uintptr(n*r.i.cfg.RxBytes) + uintptr(off)
	m.Header, m.Head, m.Payload = ev.HeaderData(), at, at+uintptr(head)
	m.Length, m.HeadBytes, m.ID, m.Source = ev.Length()-uint32(head), uint16(head), uint8(am), e.index
	return hot.TransportArrival
}

// TakeArrival is done with the message that NextArrival has found (seam.Functions). Lease.
func TakeArrival(transport, bell, _, _ uintptr) uintptr {
	p := seam.TransportAt(transport)
	i := (*Iface)(p.Iface())
	r := &i.rx
	ev := r.events.PeekAny()
	e := i.peer(i.driver.found)
	e.lease.next++
	e.lease.source = true
	e.hears()
	r.account(ev)
	order.Store64(&p.Hot.Taken, p.Hot.Taken+1)
	if r.events.Free(ev) {
		word, value := r.events.Due()
		seam.BellAt(bell).Ring(word, value, r.events.Lock())
	}
	if r.events.PeekAny().There() {
		return 1
	}
	return 0
}
