package note

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// The receiver's side. Each sender may have a window on its way or waiting here, which it gets back as what it sent is
// taken. It asks for more, and gets it in the order of asking while what all senders have beyond their windows is
// within a bound (FI_WEFT_NOTE_BYTES). So that and the windows bound what waits here, and a sender that has something
// to send waits for no sender that has not.

// stream is a stream of notifications. It is guarded by Inbox.mu.
type stream struct {
	id      uint64
	src     hw.Source
	name    []byte      // of the sender, as the address vector takes it
	line    *hot.NoteIn // what both ends count
	granted uint64      // of Inbox.granted, what is the stream's
	part    *unexpected
	asking  bool
	need    uint64 // how far it has to go, with asking
	want    uint64 // how far it would
	owed    bool   // it is in Inbox.owing
	ackDue  bool   // it waits for the ACK of what it sent
}

func (in *stream) arrived() uint64 { return in.line.Arrived }
func (in *stream) taken() uint64   { return atomic.LoadUint64(&in.line.Taken) }
func (in *stream) limit() uint64   { return atomic.LoadUint64(&in.line.Limit) }

// grant lets the sender go further. It is given more when half of that is taken.
func (in *stream) grant(limit uint64) {
	taken := in.taken()
	atomic.StoreUint64(&in.line.Limit, limit)
	atomic.StoreUint64(&in.line.Due, taken+(limit-taken)/2)
}

// recount takes in what a stream's sender has beyond its window. The caller has b.mu.
func (b *Inbox) recount(in *stream) {
	taken := in.taken()
	now := max(in.limit(), taken+window) - taken - window
	b.granted += now - in.granted
	in.granted = now
}

// unexpected is a notification that arrives, or waits in the list of an endpoint whose ring has no room for it.
type unexpected struct {
	in   *stream
	head wire.Notice
	src  fi.Addr
	data []byte
}

// maxStreams bounds the streams of an endpoint, which peers choose.
const maxStreams = 1 << 20

// Inbox is what has arrived at an endpoint. The lock is taken by the lease holder, and by threads that take
// notifications; nothing is called under it that takes another.
type Inbox struct {
	Queue   *cq.Queue   // for a completion each, nil: none; immutable from Open on
	Counter *cq.Counter // likewise
	Only    bool        // they are counted, and not kept; likewise
	closed  bool        // the endpoint takes none; likewise

	notes      *Notes
	mu         sync.Mutex
	streams    map[uint64]*stream
	unexpected []*unexpected
	granted    uint64 // of all streams
	askers     []*stream
	owing      []*stream // that may be due credit
}

// find returns a sender's stream; fresh: it is to be made if there is none. nil: it is another sender's, or there are
// too many. The caller has b.mu.
func (b *Inbox) find(e Leased, src hw.Source, id uint64, fresh bool) *stream {
	in := b.streams[id]
	if in == nil && fresh && len(b.streams) < maxStreams {
		in = &stream{id: id, src: src, name: e.Name(src)}
		in.line = b.lineFor(src, id, in.name)
		b.streams[id] = in
	}
	if in == nil || in.src != src {
		return nil
	}
	return in
}

// arriveShort takes in a notification behind a short head: of the stream that its sender has.
func (b *Inbox) arriveShort(e Leased, src hw.Source, tag uint64, head, payload []byte) {
	var h wire.Notice
	mark, ok := h.ParseShort(head, tag, len(payload))
	b.mu.Lock()
	in := b.ofSource(src)
	if ok = ok && in != nil && mark == hot.NoticeMark(in.id, in.arrived()); ok {
		h.Start = in.arrived() // which the lease holder alone changes
	}
	b.mu.Unlock()
	if !ok {
		e.Malformed(src, "notification of %d bytes with a short head of %d, not the next of its stream",
			len(payload), len(head))
		return
	}
	var long [wire.NoticeBytes]byte
	b.arrive(e, src, in.id, h.Put(long[:]), payload, &wire.Move{})
}

// arrive takes in some bytes of a notification, or all of them with their write.
func (b *Inbox) arrive(e Leased, src hw.Source, id uint64, head, payload []byte, moved *wire.Move) {
	var h wire.Notice
	if !h.Parse(head, len(payload)) {
		e.Malformed(src, "notification of %d bytes with a head of %d", len(payload), len(head))
		return
	}
	b.mu.Lock()
	in := b.find(e, src, id, h.Start == 0 && h.Offset == 0)
	if in == nil || !in.fits(&h) {
		b.mu.Unlock()
		e.Malformed(src, "notification of %d bytes from %d, which its sender may not send now",
			h.Length, h.Offset)
		return
	}
	if moved.Data != nil {
		b.mu.Unlock()
		status := e.Perform(src, moved.Head, moved.Addr, moved.Data)
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
		n = &unexpected{in: in, head: h, data: make([]byte, 0, h.Length)}
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
		b.notes.stats.Rx(stats.RxNotes, 1)
		b.report(n)
	}
}

// ofSource returns the stream of a sender, nil: it has none. The caller has b.mu.
func (b *Inbox) ofSource(src hw.Source) *stream {
	if ins := b.notes.memory.ins; int(src) < len(ins) && ins[src].Stream != 0 {
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
func (in *stream) fits(h *wire.Notice) bool {
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
func (b *Inbox) keep(e Leased, n *unexpected) {
	n.src = e.Addr(n.in.src)
	n.in.ackDue = n.in.ackDue || n.head.Ack
	switch {
	case b.Only:
		b.release(n)
	case !b.intoRing(n):
		b.unexpected = append(b.unexpected, n)
		b.share()
	}
	if n.head.Ack {
		b.owe(n.in)
	}
}

// release takes in that a notification needs no room any more. The caller has b.mu.
func (b *Inbox) release(n *unexpected) {
	b.taken(n.in, n.head.Cost())
}

// taken takes in that notifications of a cost need no room any more. The caller has b.mu.
func (b *Inbox) taken(in *stream, cost uint64) {
	due := b.takenOf(in.line, cost)
	if b.streams[in.id] != in {
		return // its sender is gone
	}
	if due || len(b.askers) != 0 {
		b.owe(in)
	}
}

// share shows the data plane whether the runtime has notifications, and whether senders wait. The caller has b.mu.
func (b *Inbox) share() {
	if h := b.notes.memory.hot; h != nil {
		atomic.StoreUint32(&h.Unexpected, uint32(min(1, len(b.unexpected))))
		atomic.StoreUint32(&h.Asked, uint32(min(1, len(b.askers))))
	}
}

// owe has progress serve a stream. The caller has b.mu.
func (b *Inbox) owe(in *stream) {
	if !in.owed {
		in.owed = true
		b.owing = append(b.owing, in)
	}
	b.notes.notify()
}

// asked takes in that a sender needs more than its window.
func (b *Inbox) asked(e Leased, src hw.Source, id uint64, w *wire.NoticeWords) {
	const most = Longest + AgentLongest + wire.NoticeCost // of one notification
	b.mu.Lock()
	in := b.find(e, src, id, w.A <= most)
	if in == nil || w.A < in.arrived() || w.A-in.arrived() > most+in.limit()-in.arrived() {
		b.mu.Unlock()
		e.Malformed(src, "a sender of notifications asks for %d", w.A)
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
func (b *Inbox) pump(e Leased) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bound := b.notes.bound
	for _, in := range b.owing {
		if b.streams[in.id] == in {
			b.recount(in)
		}
	}
	for len(b.askers) != 0 {
		in := b.askers[0]
		b.recount(in)
		base := max(in.limit(), in.taken()+window)
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
		if b.streams[in.id] != in {
			continue
		}
		if taken := in.taken(); taken >= atomic.LoadUint64(&in.line.Due) {
			more := uint64(0)
			if len(b.askers) == 0 {
				more = min(extra, b.room(bound/2))
			}
			if next := taken + window + more; next > in.limit() {
				in.grant(next)
				in.ackDue = true
				b.recount(in)
			}
		}
		if in.ackDue {
			in.ackDue = false
			w := wire.NoticeWords{Kind: wire.NoticeCredit, A: in.limit(), B: in.arrived()}
			e.Answer(in.src, in.id, w)
		}
	}
	clear(b.owing)
	b.owing = b.owing[:0]
	b.share()
}

// room is what may be granted more, of all that is within a bound.
func (b *Inbox) room(bound uint64) uint64 {
	if b.granted >= bound {
		return 0
	}
	return bound - b.granted
}

// SourceLost is called when a source is gone, after its last message. What it sent stays.
func (b *Inbox) SourceLost(src hw.Source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, in := range b.streams {
		if in.src != src {
			continue
		}
		b.granted -= in.granted
		in.line = b.ownLine(in.line)
		delete(b.streams, id)
		b.askers = slices.DeleteFunc(b.askers, func(a *stream) bool { return a == in })
		if len(b.askers) != 0 {
			b.notes.notify()
		}
		b.share()
	}
}

// Take takes the oldest notifications, at most most, while room says that the i-th has somewhere to go, and returns how
// many there were. It makes progress if there are none.
func (b *Inbox) Take(most int, room func(i int, n *Note) bool) (taken int) {
	b.mu.Lock()
	taken, all := b.takeRing(most, room)
	if taken == 0 && all && len(b.unexpected) == 0 {
		b.mu.Unlock()
		b.notes.ep.Progress()
		b.mu.Lock()
		taken, all = b.takeRing(most, room)
	}
	for all && taken < most && len(b.unexpected) != 0 {
		n := b.unexpected[0]
		if !room(taken, n.note()) {
			break
		}
		b.unexpected[0] = nil
		b.unexpected = b.unexpected[1:]
		b.release(n)
		taken++
	}
	if len(b.unexpected) == 0 {
		b.unexpected = nil
	}
	b.share()
	due := len(b.owing) != 0
	b.mu.Unlock()
	if due {
		b.notes.ep.Serve()
	}
	return taken
}

func (n *unexpected) note() *Note {
	agent := n.head.Agent
	return &Note{
		Src: n.src, Name: slices.Clone(n.in.name), Agent: string(n.data[:agent]), Tag: n.head.Tag,
		Op: Op(n.head.Op), Err: fi.Errno(n.head.Status), Data: n.data[agent:],
	}
}
