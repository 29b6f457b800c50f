package provider

import (
	"slices"
	"sync"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/names"
)

// Notifications, the receiver's side. Each sender may have noteWindow on its way or held here, which it gets back as
// what it sent is taken. It asks for more, and gets it in the order of asking while what all senders have beyond their
// windows is within FI_WEFT_NOTE_BYTES. So that and the windows bound what is held, and a sender that has
// something to send waits for nobody who has not.

// noteIn is a stream of notifications. It is guarded by noteInbox.mu.
type noteIn struct {
	stream  uint64
	src     hw.Source
	from    sender
	arrived uint64 // cost of all that is here
	taken   uint64 // of that, what the application has taken
	limit   uint64 // how far the sender may go
	part    *heldNote
	asking  bool
	need    uint64 // how far it has to go, with asking
	want    uint64 // how far it would
	owed    bool   // it is in noteInbox.owing
	tell    bool   // it waits to be told that what it sent is here
}

// lent is what the sender has beyond its window.
func (in *noteIn) lent() uint64 { return max(in.limit, in.taken+noteWindow) - in.taken - noteWindow }

// heldNote is a notification that is held, or arrives.
type heldNote struct {
	in   *noteIn
	head noticeHead
	src  fi.Addr
	name names.Name
	data []byte
}

// maxStreams bounds the streams of an endpoint, which peers choose.
const maxStreams = 1 << 20

// noteInbox is what has arrived at an endpoint. The lock is taken by the lease holder, and by who takes
// notifications; nothing is called under it that takes another.
type noteInbox struct {
	ep       *Endpoint
	queue    *cq.Queue   // for a completion each, nil: none; immutable from Enable on
	counter  *cq.Counter // likewise
	only     bool        // they are counted, and not kept; likewise
	mu       sync.Mutex
	streams  map[uint64]*noteIn
	held     []*heldNote
	lent     uint64 // of all streams
	askers   []*noteIn
	owing    []*noteIn // that may be due credit
	heldCost uint64
}

// onNotice takes in a message of notifications.
func (e *Endpoint) onNotice(src hw.Source, stream uint64, head, payload []byte) {
	var w noticeWords
	switch {
	case len(head) != 0 && head[0] == noticeData && e.notes.possible():
		e.notes.in.arrive(src, stream, head, payload)
	case !e.notes.possible() || !w.parse(head, len(payload)):
		e.malformed(src, "message of notifications with a head of %d bytes", len(head))
	case w.kind == noticeCredit:
		e.notes.out.credit(src, stream, &w)
	default:
		e.notes.in.asked(src, stream, &w)
	}
}

// find returns a sender's stream; fresh: it is to be made if there is none. nil: it is another sender's, or there are
// too many. b.mu is held.
func (b *noteInbox) find(src hw.Source, stream uint64, fresh bool) *noteIn {
	from := b.ep.senderOf(src)
	in := b.streams[stream]
	if in == nil && fresh && len(b.streams) < maxStreams {
		in = &noteIn{stream: stream, src: src, from: from, limit: noteWindow}
		b.streams[stream] = in
	}
	if in == nil || in.src != src {
		return nil
	}
	return in
}

// arrive takes in some bytes of a notification. The caller holds the lease.
func (b *noteInbox) arrive(src hw.Source, stream uint64, head, payload []byte) {
	var h noticeHead
	if !h.parse(head, len(payload)) {
		b.ep.malformed(src, "notification of %d bytes with a head of %d", len(payload), len(head))
		return
	}
	b.mu.Lock()
	in := b.find(src, stream, h.start == 0 && h.offset == 0)
	if in == nil || !in.fits(&h) {
		b.mu.Unlock()
		b.ep.malformed(src, "notification of %d bytes from %d, which its sender may not send now", h.length, h.offset)
		return
	}
	n := in.part
	if n == nil {
		n = &heldNote{in: in, head: h, data: make([]byte, 0, h.length)}
		in.part = n
		b.heldCost += h.cost()
	}
	n.data = append(n.data, payload...)
	whole := len(n.data) == int(h.length)
	if whole {
		in.part = nil
		in.arrived += h.cost()
		b.keep(n)
	}
	b.mu.Unlock()
	if whole {
		b.report(n)
	}
}

// fits tells whether a message is the next one of its stream.
func (in *noteIn) fits(h *noticeHead) bool {
	if h.start != in.arrived || h.cost() > in.limit-in.arrived {
		return false
	}
	if in.part == nil {
		return h.offset == 0
	}
	first := in.part.head
	first.offset = h.offset
	return first == *h && int(h.offset) == len(in.part.data)
}

// keep holds a notification that is whole, unless they are only counted. b.mu is held.
func (b *noteInbox) keep(n *heldNote) {
	e := b.ep
	n.src, n.name = e.addrOf(n.in.from.id), e.rx.idNames[idSlot(n.in.from.id)]
	n.in.tell = n.in.tell || n.head.ack
	if b.only {
		b.release(n)
	} else {
		b.held = append(b.held, n)
	}
	if n.head.ack {
		b.owe(n.in)
	}
}

// report completes or counts a notification.
func (b *noteInbox) report(n *heldNote) {
	if b.queue != nil {
		flags := fi.Recv | fi.Msg
		switch n.head.op {
		case NoteWrite:
			flags = fi.RMA | fi.RemoteWrite
		case NoteRead:
			flags = fi.RMA | fi.RemoteRead
		}
		b.queue.Complete(cq.Entry{Flags: flags | fi.RemoteCQData, Len: uint64(n.head.length) - uint64(n.head.agent), Data: n.head.tag, Src: n.src})
	}
	if b.counter != nil {
		b.counter.Count(1)
	}
}

// release takes in that a notification needs no room any more. b.mu is held.
func (b *noteInbox) release(n *heldNote) {
	in, before := n.in, n.in.lent()
	in.taken += n.head.cost()
	b.heldCost -= n.head.cost()
	if b.streams[in.stream] != in {
		return // its sender is gone
	}
	b.lent -= before - in.lent()
	if in.limit < in.taken+noteWindow/2 || len(b.askers) != 0 {
		b.owe(in)
	}
}

// owe has progress look at a stream. b.mu is held.
func (b *noteInbox) owe(in *noteIn) {
	if !in.owed {
		in.owed = true
		b.owing = append(b.owing, in)
	}
	b.ep.notes.notify()
}

// asked takes in that a sender needs more than its window. The caller holds the lease.
func (b *noteInbox) asked(src hw.Source, stream uint64, w *noticeWords) {
	b.mu.Lock()
	in := b.find(src, stream, w.a <= MaxNote+MaxAgent+noteCost)
	if in == nil || w.a < in.arrived || w.a-in.arrived > MaxNote+MaxAgent+noteCost+in.limit-in.arrived {
		b.mu.Unlock()
		b.ep.malformed(src, "a sender of notifications asks for %d", w.a)
		return
	}
	in.need, in.want = w.a, w.b
	if !in.asking {
		in.asking = true
		b.askers = append(b.askers, in)
	}
	b.owe(in)
	b.mu.Unlock()
}

// pump gives credit to those who are due some. The caller holds the lease.
func (b *noteInbox) pump() {
	b.mu.Lock()
	defer b.mu.Unlock()
	bound := uint64(b.ep.domain.cfg.NoteBytes)
	for len(b.askers) != 0 {
		in := b.askers[0]
		before := in.lent()
		base := max(in.limit, in.taken+noteWindow)
		room := uint64(0)
		if b.lent < bound {
			room = bound - b.lent
		}
		if in.need > base+room {
			break
		}
		in.limit, in.asking = max(base, min(in.want, base+room)), false
		b.lent += in.lent() - before
		b.askers = slices.Delete(b.askers, 0, 1)
		in.tell = true
		if !in.owed {
			in.owed = true
			b.owing = append(b.owing, in)
		}
	}
	for _, in := range b.owing {
		in.owed = false
		if next := in.taken + noteWindow; next >= in.limit+noteWindow/2 {
			in.limit, in.tell = next, true
		}
		if in.tell && b.streams[in.stream] == in {
			in.tell = false
			w := noticeWords{noticeCredit, in.limit, in.arrived}
			b.ep.rx.answer(b.ep, in.src, in.from, amNotice, in.stream, w.put(b.ep.rx.head[:]))
		}
	}
	clear(b.owing)
	b.owing = b.owing[:0]
}

// sourceLost is called when a source is gone, after its last message. What it sent stays.
func (b *noteInbox) sourceLost(src hw.Source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, in := range b.streams {
		if in.src != src {
			continue
		}
		b.lent -= in.lent()
		if in.part != nil {
			b.heldCost -= in.part.head.cost()
		}
		delete(b.streams, id)
		b.askers = slices.DeleteFunc(b.askers, func(a *noteIn) bool { return a == in })
		if len(b.askers) != 0 {
			b.ep.notes.notify()
		}
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
	if len(b.held) == 0 {
		b.mu.Unlock()
		e.Progress()
		b.mu.Lock()
	}
	for taken < most && len(b.held) != 0 {
		h := b.held[0]
		if !room(taken, h.note(e)) {
			break
		}
		b.held[0] = nil
		b.held = b.held[1:]
		b.release(h)
		taken++
	}
	if len(b.held) == 0 {
		b.held = nil
	}
	due := len(b.owing) != 0
	b.mu.Unlock()
	if due {
		e.Progress()
	}
	return taken, nil
}

func (h *heldNote) note(e *Endpoint) *Note {
	raw, err := names.Encode(e.format, h.name)
	if err != nil {
		log.Debugf(log.EPData, "name of a sender: %v", err)
	}
	return &Note{
		Src: h.src, Name: raw, Agent: string(h.data[:h.head.agent]), Tag: h.head.tag, Op: h.head.op, Err: fi.Errno(h.head.status),
		Data: h.data[h.head.agent:],
	}
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
