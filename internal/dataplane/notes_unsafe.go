package dataplane

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
)

// Notifications that have arrived: the lease holder puts them into the endpoint's ring of notes, any thread takes them.
// A message that is not one whole notification of a stream that is known here is the runtime's, which puts what comes
// of it into the same ring; so is all that comes while the runtime has some that found no room there.

// takeNotice takes in a message of notifications.
func takeNotice(d *hot.Delivery, ep *hot.EP, owner uint32, slot *hot.Slot, m message) uintptr {
	n := (*hot.Notes)(pointer(ep.Notes))
	src, addr := sender(ep, owner)
	if n.Keeps == hot.NotesNot || src == nil || owner-1 >= n.InCount || atomic.LoadUint32(&n.Unexpected) != 0 ||
		m.flags()&^hot.SlotBounce != 0 {
		return hot.DeliveryGo
	}
	in := (*hot.NoteIn)(pointer(n.Ins + uintptr(owner-1)*unsafe.Sizeof(hot.NoteIn{})))
	var head hot.NoticeHead
	if !noticeHead(&head, slot, m, in) || m.length() < head.Length || !wholeNote(&head, in) {
		return hot.DeliveryGo
	}
	moved := uint64(m.length() - head.Length)
	to, ok := destination(ep, slot, &head, m, moved)
	if !ok {
		return hot.DeliveryGo
	}
	d.Bounce = 0
	payload := bodyOf(slot) + uintptr(m.head())
	if m.flags() != 0 {
		if payload = bounced(d, src, owner, payload, m.length()); payload == 0 {
			return hot.DeliveryGo
		}
	} else if m.length() > hot.SlotBody-m.head() {
		return hot.DeliveryGo
	}
	skip, fits := noteRoom(n, in, head.Length)
	var s spot
	q := (*hot.CQ)(pointer(ep.RxCQ))
	if !fits || n.Keeps == hot.NotesComplete && !s.take(q, reader(d)) {
		return hot.DeliveryGo
	}
	if to != 0 {
		move(to, payload+uintptr(head.Length), uintptr(moved))
	}
	keepNote(n, in, &head, owner-1, hot.AddrOfSender(addr), payload, skip)
	if n.Keeps == hot.NotesComplete {
		e := hot.CQE{
			Flags: noteEvents[head.Op] | fi.RemoteCQData, Len: uint64(head.Length) - uint64(head.Agent),
			Data: head.Tag, Src: hot.AddrOfSender(addr),
		}
		if s.fill(q, &e) {
			d.Todo |= hot.TodoWakeCQ
		}
	}
	in.Arrived += hot.NoticeCost + uint64(head.Length)
	if to != 0 {
		stat(ep, stats.RxServedWrites, 1)
	}
	stat(ep, stats.RxNotes, 1)
	stat(ep, stats.RxNotesDirect, 1)
	release(d, ep)
	return next
}

// noticeHead fills in h, which is zero, with the head of a message of notifications, a short one as the long one that
// it stands for. False: it is not of the stream that is known here.
func noticeHead(h *hot.NoticeHead, slot *hot.Slot, m message, in *hot.NoteIn) (known bool) {
	if int(m.head()) != noticeShortBytes {
		*h = *(*hot.NoticeHead)(unsafe.Pointer(&slot.Body))
		return in.Stream == m.header && in.Stream != 0 && h.Kind != hot.NoticeBrief
	}
	s := *(*hot.NoticeShort)(unsafe.Pointer(&slot.Body))
	h.Kind, h.Op, h.Agent, h.Start, h.Tag, h.Length = s.Kind, s.Op, s.Agent, in.Arrived, m.header, m.length()
	return s.Kind == hot.NoticeBrief && s.Rest == 0 && in.Stream != 0 &&
		s.Mark == hot.NoticeMark(in.Stream, in.Arrived)
}

// noteEvents are the flags of completions of notifications, by their operation.
var noteEvents = [...]uint64{
	hot.NoticeWrite: fi.RMA | fi.RemoteWrite,
	hot.NoticeRead:  fi.RMA | fi.RemoteRead,
	hot.NoticeAlone: fi.Recv | fi.Msg,
}

// destination is where the bytes go that come with a notification, 0: none do. False: the runtime says what is wrong.
func destination(ep *hot.EP, slot *hot.Slot, h *hot.NoticeHead, m message, moved uint64) (to uintptr, ok bool) {
	switch h.Kind {
	case hot.NoticeBrief:
		return 0, true // it is as long as the message
	case hot.NoticeData:
		return 0, int(m.head()) == noticeHeadBytes && moved == 0
	}
	w := *(*hot.NoticeWhere)(pointer(bodyOf(slot) + uintptr(noticeHeadBytes)))
	if h.Kind != hot.NoticeMove || int(m.head()) != noticeMoveBytes || w.Bytes != moved || moved == 0 ||
		ep.Regions == 0 {
		return 0, false
	}
	to = regionAt(ep, w.Key, w.Addr, moved, hot.KeyWrite)
	return to, to != 0
}

// wholeNote reports whether a message has the next notification of its stream, and all of it.
func wholeNote(h *hot.NoticeHead, in *hot.NoteIn) bool {
	n := h.Length
	return h.Ack == 0 && h.Op <= hot.NoticeAlone && h.Status < 1024 && h.Offset == 0 &&
		h.Agent <= hot.AgentLongest && uint32(h.Agent) <= n && n-uint32(h.Agent) <= hot.NoticeLongest &&
		h.Start == in.Arrived && hot.NoticeCost+uint64(n) <= atomic.LoadUint64(&in.Limit)-in.Arrived
}

// round rounds up to what records are multiples of.
func round(n uint32) uint64 { return (uint64(n) + 7) &^ 7 }

// recordBytes are those of a hot.NoteRecord, which the address and the bytes follow.
const recordBytes = uint64(unsafe.Sizeof(hot.NoteRecord{}))

// ringStart is how many bytes of a ring that becomes empty again and again are used, so that they stay in the cache.
const ringStart = 8192

// recordSize is that of the record of a notification of so many bytes.
func recordSize(in *hot.NoteIn, length uint32) uint64 {
	return recordBytes + round(in.NameLen) + round(length)
}

// noteRoom finds room in the ring for a notification of so many bytes, and how many are to be left out before it.
// False: the ring is full.
func noteRoom(n *hot.Notes, in *hot.NoteIn, length uint32) (skip uint64, ok bool) {
	size := recordSize(in, length)
	tail := n.Tail
	used := tail - atomic.LoadUint64(&n.Head)
	left := n.Bytes - tail&(n.Bytes-1) // to the ring's end; at least 8, as all are multiples of it
	if left < size || used == 0 && n.Bytes-left >= ringStart && left+size <= n.Bytes {
		skip = left
	}
	return skip, size <= n.Bytes && used+skip+size <= n.Bytes
}

// keepNote puts a notification into the ring, in the room that noteRoom has found.
func keepNote(n *hot.Notes, in *hot.NoteIn, h *hot.NoticeHead, source uint32, addr uint64, payload uintptr,
	skip uint64) {
	size, tail := recordSize(in, h.Length), n.Tail
	if skip != 0 {
		r := recordAt(n, tail)
		r.Bytes, r.Length = uint32(skip), hot.NoteSkip // the first 8 bytes
		tail += skip
	}
	r := recordAt(n, tail)
	r.Bytes, r.Length, r.Agent, r.Op, r.Status = uint32(size), h.Length, h.Agent, h.Op, uint16(h.Status)
	r.NameLen, r.Source, r.Generation, r.Tag, r.Addr = in.NameLen, source, in.Generation, h.Tag, addr
	at := uintptr(unsafe.Pointer(r)) + uintptr(recordBytes)
	move(at, uintptr(unsafe.Pointer(&in.Name)), uintptr(in.NameLen))
	move(at+uintptr(round(in.NameLen)), payload, uintptr(h.Length))
	order.Store64(&n.Tail, tail+size)
}

// KeepNote puts a notification that the runtime has taken in into the ring: of the stream at in, which is that of the
// sender with a number and an address. data is the sender's name for itself with the notification, as long as h
// says. False: the ring is full. The caller has the progress lease.
func KeepNote(n *hot.Notes, in *hot.NoteIn, h *hot.NoticeHead, source uint32, addr uint64, data []byte) bool {
	skip, ok := noteRoom(n, in, h.Length)
	if ok {
		keepNote(n, in, h, source, addr, uintptr(unsafe.Pointer(unsafe.SliceData(data))), skip)
		runtime.KeepAlive(data)
	}
	return ok
}

func recordAt(n *hot.Notes, pos uint64) *hot.NoteRecord {
	return (*hot.NoteRecord)(pointer(n.Ring + uintptr(pos&(n.Bytes-1))))
}

// LeaseNotes gives the caller the right to take notifications off the ring, until ReturnNotes. False: another thread
// has it.
func LeaseNotes(n *hot.Notes) bool { return atomic.CompareAndSwapUint32(&n.Taking, 0, 1) }

// ReturnNotes gives it back.
func ReturnNotes(n *hot.Notes) { order.Store32(&n.Taking, 0) }

// FirstNote is the oldest notification in the ring, nil: there is none. The caller has leased the ring.
func FirstNote(n *hot.Notes) *hot.NoteRecord {
	for {
		head := n.Head
		if head == atomic.LoadUint64(&n.Tail) {
			return nil
		}
		r := recordAt(n, head)
		if r.Length != hot.NoteSkip {
			return r
		}
		order.Store64(&n.Head, head+uint64(r.Bytes))
	}
}

// NoteParts are where a record's address of the sender is, and the sender's name for itself with the notification
// behind it.
func NoteParts(r *hot.NoteRecord) (name, rest unsafe.Pointer) {
	name = unsafe.Add(unsafe.Pointer(r), recordBytes)
	return name, unsafe.Add(name, round(r.NameLen))
}

// DropNote takes the oldest notification, r, off the ring. due: its sender is to be given more.
func DropNote(n *hot.Notes, r *hot.NoteRecord) (due bool) {
	in := (*hot.NoteIn)(pointer(n.Ins + uintptr(r.Source)*unsafe.Sizeof(hot.NoteIn{})))
	if in.Generation == r.Generation { // else the sender is gone
		due = TakenOf(in, hot.NoticeCost+uint64(r.Length)) || atomic.LoadUint32(&n.Asked) != 0
	}
	order.Store64(&n.Head, n.Head+uint64(r.Bytes))
	return due
}

// TakenOf takes in that the application has taken notifications of a cost, and reports whether their
// sender is to be given more. The caller has leased the ring, unless the stream is not of its endpoint's table.
func TakenOf(in *hot.NoteIn, cost uint64) bool {
	taken := in.Taken + cost
	order.Store64(&in.Taken, taken)
	return taken >= atomic.LoadUint64(&in.Due)
}

// Take takes notifications for the application. t is the address of a hot.NoteTake, the result one of its codes.
func Take(t, _, _, _ uintptr) uintptr { return takeNotes((*hot.NoteTake)(pointer(t))) }

// How far a call that takes notifications has come: its step.
const (
	takeBegins  = iota
	takeChecked // its entries are
	takePolled  // it has found none, and the shim has made progress
)

func takeNotes(t *hot.NoteTake) uintptr {
	if t.Step == takeBegins && !entriesHold(t) {
		return tookAll(t, -int64(fi.EINVAL))
	}
	if t.Step == takePolled && t.Found == 0 {
		return tookAll(t, 0)
	}
	code := takeSome(t)
	switch {
	case code == hot.TakeGo && t.Taken != 0: // what the runtime has is for the next call
		return tookAll(t, int64(t.Taken))
	case code == hot.TakeDone && t.Result == 0 && t.Step != takePolled:
		t.Step = takePolled
		return hot.TakePoll
	}
	return code
}

// takeSome takes what the ring has for a call.
func takeSome(t *hot.NoteTake) uintptr {
	if t.EP == 0 || endpoint(t.EP).Notes == 0 {
		return hot.TakeGo
	}
	n := (*hot.Notes)(pointer(endpoint(t.EP).Notes))
	if n.InCount == 0 { // the endpoint takes none
		return hot.TakeGo
	}
	if atomic.LoadUint64(&n.Head) == atomic.LoadUint64(&n.Tail) { // whatever another thread is taking
		if atomic.LoadUint32(&n.Unexpected) != 0 {
			return hot.TakeGo
		}
		return tookAll(t, int64(t.Taken))
	}
	if !LeaseNotes(n) {
		return hot.TakeGo
	}
	code := takeRing(t, n)
	ReturnNotes(n)
	return code
}

// entriesHold reports whether each of a call's entries has memory for what is to go there, and takes that in.
func entriesHold(t *hot.NoteTake) bool {
	for i := range t.Left {
		e := (*hot.NoteEntry)(pointer(t.Entries + uintptr(i)*unsafe.Sizeof(hot.NoteEntry{})))
		if e.Data == 0 && e.Size != 0 {
			return false
		}
	}
	t.Step = takeChecked
	return true
}

// tookAll ends a call with a result.
func tookAll(t *hot.NoteTake, result int64) uintptr {
	t.Result = result
	return hot.TakeDone
}

// give fills in an entry, which has room.
func give(e *hot.NoteEntry, r *hot.NoteRecord) {
	name, rest := NoteParts(r)
	e.Src, e.Tag, e.Op, e.Err, e.NameLen = r.Addr, r.Tag, uint32(r.Op), uint32(r.Status), uint64(r.NameLen)
	move(uintptr(unsafe.Pointer(&e.Name)), uintptr(name), uintptr(r.NameLen))
	agent := uintptr(unsafe.Pointer(&e.Agent))
	if r.Agent != 0 {
		move(agent, uintptr(rest), uintptr(r.Agent))
	}
	*(*byte)(pointer(agent + uintptr(r.Agent))) = 0
	move(e.Data, uintptr(rest)+uintptr(r.Agent), uintptr(e.Len))
}

// takeRing takes them off the ring.
func takeRing(t *hot.NoteTake, n *hot.Notes) uintptr {
	for ; t.Left != 0; t.Left-- {
		r := FirstNote(n)
		if r == nil {
			break
		}
		e := (*hot.NoteEntry)(pointer(t.Entries))
		if e.Len = uint64(r.Length) - uint64(r.Agent); e.Len > e.Size {
			if t.Taken == 0 {
				return tookAll(t, -int64(fi.ETOOSMALL))
			}
			break
		}
		give(e, r)
		t.Source = r.Source
		t.Entries += unsafe.Sizeof(hot.NoteEntry{})
		t.Taken++
		if DropNote(n, r) {
			t.Left--
			return hot.TakeCredit
		}
	}
	return tookAll(t, int64(t.Taken))
}
