package provider

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/names"
	"github.com/weft-fabric/weft/provider/wire"
)

// Notifications, the receiver's side. Each sender may have noteWindow on its way or waiting here, which it gets back as
// what it sent is taken. It asks for more, and gets it in the order of asking while what all senders have beyond their
// windows is within FI_WEFT_NOTE_BYTES. So that and the windows bound what waits here, and a sender that has
// something to send waits for no sender that has not.

// noteIn is a stream of notifications. It is guarded by noteInbox.mu.
type noteIn struct {
	stream  uint64
	src     hw.Source
	from    sender
	line    *hot.NoteIn // what both ends count
	granted uint64      // of noteInbox.granted, what is the stream's
	part    *unexpectedNote
	asking  bool
	need    uint64 // how far it has to go, with asking
	want    uint64 // how far it would
	owed    bool   // it is in noteInbox.owing
	ackDue  bool   // it waits for the ACK of what it sent
}

func (in *noteIn) arrived() uint64 { return in.line.Arrived }
func (in *noteIn) taken() uint64   { return atomic.LoadUint64(&in.line.Taken) }
func (in *noteIn) limit() uint64   { return atomic.LoadUint64(&in.line.Limit) }

// grant lets the sender go further. It is given more when half of that is taken.
func (in *noteIn) grant(limit uint64) {
	taken := in.taken()
	atomic.StoreUint64(&in.line.Limit, limit)
	atomic.StoreUint64(&in.line.Due, taken+(limit-taken)/2)
}

// recount takes in what a stream's sender has beyond its window. The caller has b.mu.
func (b *noteInbox) recount(in *noteIn) {
	taken := in.taken()
	now := max(in.limit(), taken+noteWindow) - taken - noteWindow
	b.granted += now - in.granted
	in.granted = now
}

// unexpectedNote is a notification that arrives, or waits in the list of an endpoint whose ring has no room for it.
type unexpectedNote struct {
	in   *noteIn
	head wire.Notice
	src  fi.Addr
	name names.Name
	data []byte
}

// maxStreams bounds the streams of an endpoint, which peers choose.
const maxStreams = 1 << 20

// noteInbox is what has arrived at an endpoint. The lock is taken by the lease holder, and by threads that take
// notifications; nothing is called under it that takes another.
type noteInbox struct {
	ep         *Endpoint
	queue      *cq.Queue   // for a completion each, nil: none; immutable from Enable on
	counter    *cq.Counter // likewise
	only       bool        // they are counted, and not kept; likewise
	mu         sync.Mutex
	streams    map[uint64]*noteIn
	unexpected []*unexpectedNote
	granted    uint64 // of all streams
	askers     []*noteIn
	owing      []*noteIn // that may be due credit
}

// onNotice takes in a message of notifications.
func (e *leasedEP) onNotice(src hw.Source, stream uint64, head, payload []byte) {
	var w wire.NoticeWords
	switch {
	case len(head) != 0 && head[0] == wire.NoticeData && e.notes.possible():
		e.notes.in.arrive(e, src, stream, head, payload, &wire.Move{})
	case len(head) != 0 && head[0] == wire.NoticeMove && e.notes.possible():
		plain, note, moved, ok := wire.SplitMove(head, payload)
		if !ok {
			e.malformed(src, "write of %d bytes with its notification, with a head of %d", len(payload), len(head))
			return
		}
		e.notes.in.arrive(e, src, stream, plain[:], note, &moved)
	case len(head) != 0 && head[0] == wire.NoticeBrief && e.notes.possible():
		e.notes.in.arriveShort(e, src, stream, head, payload)
	case !e.notes.possible() || !w.Parse(head, len(payload)):
		e.malformed(src, "message of notifications with a head of %d bytes", len(head))
	case w.Kind == wire.NoticeCredit:
		e.notes.out.credit(e, src, stream, &w)
	default:
		e.notes.in.asked(e, src, stream, &w)
	}
}

// find returns a sender's stream; fresh: it is to be made if there is none. nil: it is another sender's, or there are
// too many. The caller has b.mu.
func (b *noteInbox) find(e *leasedEP, src hw.Source, stream uint64, fresh bool) *noteIn {
	from := e.senderOf(src)
	in := b.streams[stream]
	if in == nil && fresh && len(b.streams) < maxStreams {
		in = &noteIn{stream: stream, src: src, from: from}
		in.line = b.lineFor(src, stream, e.rawName(from))
		b.streams[stream] = in
	}
	if in == nil || in.src != src {
		return nil
	}
	return in
}

// arriveShort takes in a notification behind a short head: of the stream that its sender has.
func (b *noteInbox) arriveShort(e *leasedEP, src hw.Source, tag uint64, head, payload []byte) {
	var h wire.Notice
	mark, ok := h.ParseShort(head, tag, len(payload))
	b.mu.Lock()
	in := b.ofSource(src)
	if ok = ok && in != nil && mark == hot.NoticeMark(in.stream, in.arrived()); ok {
		h.Start = in.arrived() // which the lease holder alone changes
	}
	b.mu.Unlock()
	if !ok {
		e.malformed(src, "notification of %d bytes with a short head of %d, not the next of its stream", len(payload),
			len(head))
		return
	}
	var long [wire.NoticeBytes]byte
	b.arrive(e, src, in.stream, h.Put(long[:]), payload, &wire.Move{})
}

// arrive takes in some bytes of a notification, or all of them with their write.
func (b *noteInbox) arrive(e *leasedEP, src hw.Source, stream uint64, head, payload []byte, moved *wire.Move) {
	var h wire.Notice
	if !h.Parse(head, len(payload)) {
		e.malformed(src, "notification of %d bytes with a head of %d", len(payload), len(head))
		return
	}
	b.mu.Lock()
	in := b.find(e, src, stream, h.Start == 0 && h.Offset == 0)
	if in == nil || !in.fits(&h) {
		b.mu.Unlock()
		e.malformed(src, "notification of %d bytes from %d, which its sender may not send now",
			h.Length, h.Offset)
		return
	}
	if moved.Data != nil {
		b.mu.Unlock()
		status := e.perform(src, &moved.Head, moved.Addr, moved.Data)
		b.mu.Lock()
		if status != fi.Success { // the write has failed, so there is no notification
			in.line.Arrived += h.Cost()
			b.taken(in, h.Cost())
			b.mu.Unlock()
			return
		}
	}
	n := in.part
	if n == nil {
		n = &unexpectedNote{in: in, head: h, data: make([]byte, 0, h.Length)}
		in.part = n
	}
	n.data = append(n.data, payload...)
	whole := len(n.data) == int(h.Length)
	if whole {
		in.part = nil
		in.line.Arrived += h.Cost()
		b.keep(e, n)
	}
	b.mu.Unlock()
	if whole {
		b.ep.stats.Rx(stats.RxNotes, 1)
		b.report(n)
	}
}

// ofSource returns the stream of a sender, nil: it has none. The caller has b.mu.
func (b *noteInbox) ofSource(src hw.Source) *noteIn {
	if ins := b.ep.notes.memory.ins; int(src) < len(ins) && ins[src].Stream != 0 {
		return b.streams[ins[src].Stream]
	}
	for _, in := range b.streams { // one that found no room in the table
		if in.src == src {
			return in
		}
	}
	return nil
}

// fits reports whether a message is the next one of its stream.
func (in *noteIn) fits(h *wire.Notice) bool {
	if h.Start != in.arrived() || h.Cost() > in.limit()-in.arrived() {
		return false
	}
	if in.part == nil {
		return h.Offset == 0
	}
	first := in.part.head
	first.Offset = h.Offset
	return first == *h && int(h.Offset) == len(in.part.data)
}

// keep keeps a notification that is whole, unless they are only counted. The caller has b.mu.
func (b *noteInbox) keep(e *leasedEP, n *unexpectedNote) {
	n.src, n.name = e.addrOf(n.in.from.id), e.rx.idNames[idSlot(n.in.from.id)]
	n.in.ackDue = n.in.ackDue || n.head.Ack
	switch {
	case b.only:
		b.release(n)
	case !b.intoRing(n):
		b.unexpected = append(b.unexpected, n)
		b.share()
	}
	if n.head.Ack {
		b.owe(n.in)
	}
}

// report completes or counts a notification.
func (b *noteInbox) report(n *unexpectedNote) {
	if b.queue != nil {
		flags := fi.Recv | fi.Msg
		switch NoteOp(n.head.Op) {
		case NoteWrite:
			flags = fi.RMA | fi.RemoteWrite
		case NoteRead:
			flags = fi.RMA | fi.RemoteRead
		}
		b.queue.Complete(cq.Entry{Flags: flags | fi.RemoteCQData,
			Len: uint64(n.head.Length) - uint64(n.head.Agent), Data: n.head.Tag, Src: n.src})
	}
	if b.counter != nil {
		b.counter.Count(1)
	}
}

// release takes in that a notification needs no room any more. The caller has b.mu.
func (b *noteInbox) release(n *unexpectedNote) {
	b.taken(n.in, n.head.Cost())
}

// taken takes in that notifications of a cost need no room any more. The caller has b.mu.
func (b *noteInbox) taken(in *noteIn, cost uint64) {
	due := b.takenOf(in.line, cost)
	if b.streams[in.stream] != in {
		return // its sender is gone
	}
	if due || len(b.askers) != 0 {
		b.owe(in)
	}
}

// share shows the data plane whether the runtime has notifications, and whether senders wait. The caller has b.mu.
func (b *noteInbox) share() {
	if h := b.ep.notes.memory.hot; h != nil {
		atomic.StoreUint32(&h.Unexpected, uint32(min(1, len(b.unexpected))))
		atomic.StoreUint32(&h.Asked, uint32(min(1, len(b.askers))))
	}
}

// owe has progress serve a stream. The caller has b.mu.
func (b *noteInbox) owe(in *noteIn) {
	if !in.owed {
		in.owed = true
		b.owing = append(b.owing, in)
	}
	b.ep.notes.notify()
}

// asked takes in that a sender needs more than its window.
func (b *noteInbox) asked(e *leasedEP, src hw.Source, stream uint64, w *wire.NoticeWords) {
	b.mu.Lock()
	in := b.find(e, src, stream, w.A <= MaxNote+MaxAgent+wire.NoticeCost)
	if in == nil || w.A < in.arrived() || w.A-in.arrived() > MaxNote+MaxAgent+wire.NoticeCost+in.limit()-in.arrived() {
		b.mu.Unlock()
		e.malformed(src, "a sender of notifications asks for %d", w.A)
		return
	}
	in.need, in.want = w.A, w.B
	if !in.asking {
		in.asking = true
		b.askers = append(b.askers, in)
		b.share()
	}
	b.owe(in)
	b.mu.Unlock()
}

// pump gives credit to senders that are due some.
func (b *noteInbox) pump(e *leasedEP) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bound := uint64(b.ep.domain.cfg.NoteBytes)
	for _, in := range b.owing {
		if b.streams[in.stream] == in {
			b.recount(in)
		}
	}
	for len(b.askers) != 0 {
		in := b.askers[0]
		b.recount(in)
		base := max(in.limit(), in.taken()+noteWindow)
		room := b.room(bound)
		if in.need > base+room {
			break
		}
		in.grant(max(base, min(in.want, base+room)))
		in.asking = false
		b.recount(in)
		b.askers = slices.Delete(b.askers, 0, 1)
		in.ackDue = true
		if !in.owed {
			in.owed = true
			b.owing = append(b.owing, in)
		}
	}
	for _, in := range b.owing {
		in.owed = false
		if b.streams[in.stream] != in {
			continue
		}
		if taken := in.taken(); taken >= atomic.LoadUint64(&in.line.Due) {
			extra := uint64(0)
			if len(b.askers) == 0 {
				extra = min(noteExtra, b.room(bound/2))
			}
			if next := taken + noteWindow + extra; next > in.limit() {
				in.grant(next)
				in.ackDue = true
				b.recount(in)
			}
		}
		if in.ackDue {
			in.ackDue = false
			w := wire.NoticeWords{Kind: wire.NoticeCredit, A: in.limit(), B: in.arrived()}
			e.rx.answer(e, in.src, in.from, wire.AMNotice, in.stream, w.Put(e.rx.head[:]))
		}
	}
	clear(b.owing)
	b.owing = b.owing[:0]
	b.share()
}

// room is what may be granted more, of all that is within a bound.
func (b *noteInbox) room(bound uint64) uint64 {
	if b.granted >= bound {
		return 0
	}
	return bound - b.granted
}

// sourceLost is called when a source is gone, after its last message. What it sent stays.
func (b *noteInbox) sourceLost(src hw.Source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, in := range b.streams {
		if in.src != src {
			continue
		}
		b.granted -= in.granted
		in.line = b.ownLine(in.line)
		delete(b.streams, id)
		b.askers = slices.DeleteFunc(b.askers, func(a *noteIn) bool { return a == in })
		if len(b.askers) != 0 {
			b.ep.notes.notify()
		}
		b.share()
	}
}

// TakeNotes takes the oldest notifications, at most max, while room says that the i-th has somewhere to go, and
// returns how many there were; more: one is left.
func (e *Endpoint) TakeNotes(most int, room func(i int, n *Note) bool) (taken int, err error) {
	b := &e.notes.in
	switch {
	case e.state.Load() != stateEnabled:
		return 0, fi.EOPBADSTATE
	case !e.notes.possible():
		return 0, e.refuse(fi.ENOSYS, "notes: the endpoint has no notifications")
	}
	b.mu.Lock()
	taken, all := b.takeRing(most, room)
	if taken == 0 && all && len(b.unexpected) == 0 {
		b.mu.Unlock()
		e.Progress()
		b.mu.Lock()
		taken, all = b.takeRing(most, room)
	}
	for all && taken < most && len(b.unexpected) != 0 {
		h := b.unexpected[0]
		if !room(taken, h.note(e)) {
			break
		}
		b.unexpected[0] = nil
		b.unexpected = b.unexpected[1:]
		b.release(h)
		taken++
	}
	if len(b.unexpected) == 0 {
		b.unexpected = nil
	}
	b.share()
	due := len(b.owing) != 0
	b.mu.Unlock()
	if due {
		e.Progress()
	}
	return taken, nil
}

func (h *unexpectedNote) note(e *Endpoint) *Note {
	return &Note{
		Src: h.src, Name: e.encoded(h.name), Agent: string(h.data[:h.head.Agent]), Tag: h.head.Tag,
		Op:   NoteOp(h.head.Op),
		Err:  fi.Errno(h.head.Status),
		Data: h.data[h.head.Agent:],
	}
}

// rawName is a sender's address as the address vector takes it.
func (e *leasedEP) rawName(s sender) []byte { return e.encoded(e.rx.idNames[idSlot(s.id)]) }

func (e *attributes) encoded(name names.Name) []byte {
	raw, err := names.Encode(e.format, name)
	if err != nil {
		log.Debugf(log.EPData, "name of a sender: %v", err)
	}
	return raw
}

// Notes takes the notifications that have arrived, the oldest first, and makes progress if there are none. Those of
// one sender come in the order of its posts, each when all that its post has moved is there. nil: there are none.
// Errors: fi.EOPBADSTATE for an endpoint that is not enabled, fi.ENOSYS for one that has no notifications: not of type
// FI_EP_RDM, or a context of a scalable one.
func (e *Endpoint) Notes() (list []Note, err error) {
	_, err = e.TakeNotes(1<<30, func(_ int, n *Note) bool {
		list = append(list, *n)
		return true
	})
	return list, err
}
