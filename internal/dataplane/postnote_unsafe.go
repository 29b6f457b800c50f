package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/outbound"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// Notifications, alone or behind a read or a write, to a process of this host: one message each. A write that fits the
// message goes with it, so that the target refuses both or none; others, and reads, are copies that are made before.
// While others to the same receiver wait in the runtime these are the runtime's as well, so that they stay in the order
// of the posts.

// noteFlags are the flags of a notification that the data plane posts.
const noteFlags = fi.Completion | fi.More | fi.InjectComplete | fi.TransmitComplete

// wire.NoticeShortBytes are those of a hot.NoticeShort, wire.NoticeBytes those of a hot.NoticeHead,
// wire.NoticeMoveBytes those of one with a hot.NoticeWhere.
const (
	noticeShortBytes = int(unsafe.Sizeof(hot.NoticeShort{}))
	noticeHeadBytes  = int(unsafe.Sizeof(hot.NoticeHead{}))
	noticeMoveBytes  = noticeHeadBytes + int(unsafe.Sizeof(hot.NoticeWhere{}))
)

// Note posts a notification; with hot.PostAlone that is all, else there is a read or a write. at is the
// address of a hot.Post, the result one of its codes. With hot.PostNote the copy is made, and the
// notification has to wait.
func Note(at, _, _, _ uintptr) uintptr { return endPost(at, postNote(beginPost(at))) }

func postNote(p *hot.Post) uintptr {
	ep := endpoint(p.EP)
	p.Todo, p.Next = 0, 0
	if p.Step == stepCopied {
		return noteCopied(p, ep)
	}
	if p.Flags&^noteFlags != 0 || p.NoteLen > hot.NoticeLongest || p.Note == 0 && p.NoteLen != 0 {
		return hot.PostGo
	}
	peer, slots := reach(p, ep)
	if peer == nil {
		return hot.PostGo
	}
	out := streamTo(ep, peer)
	if out == nil {
		return hot.PostGo
	}
	p.Stream = uintptr(unsafe.Pointer(out))
	var e place
	if !e.room(p, ep) {
		return hot.PostAgain
	}
	if p.Kind&hot.PostAlone == 0 {
		return noteData(p, ep, peer, slots, out, &e)
	}
	if code := sendNote(p, ep, peer, slots, out, true); code != hot.PostDone {
		return code
	}
	e.complete(p, ep.TxCntr, fi.Send|fi.Msg, p.NoteLen)
	wakePeer(p, peer)
	return hot.PostDone
}

// streamTo is the stream to a peer, nil: there is none yet.
func streamTo(ep *hot.EP, peer *hot.Peer) *hot.NoteOut {
	n := (*hot.Notes)(pointer(ep.Notes))
	link := atomic.LoadUint32(&peer.Link) - 1
	if n == nil || link >= n.OutCount {
		return nil
	}
	return (*hot.NoteOut)(pointer(n.Outs + uintptr(link)*unsafe.Sizeof(hot.NoteOut{})))
}

// noteData posts a write with its notification, or begins a copy that this may follow.
func noteData(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr, out *hot.NoteOut, e *place) uintptr {
	if !copyable(p, ep) || ep.PendingCount == 0 {
		return hot.PostGo
	}
	if p.Kind&hot.PostRead == 0 && p.Len+p.NoteLen+hot.AgentLongest <= uint64(ep.EagerMax) {
		return noteMove(p, ep, peer, slots, out, e)
	}
	if code := sendNote(p, ep, peer, slots, out, false); code != hot.PostDone {
		return code
	}
	if overtakes(peer, slots) || !claimCopy(p, ep, peer) {
		return hot.PostGo
	}
	p.Step = stepCopied
	return hot.PostCopy
}

// noteMove posts a write with its notification as one message.
func noteMove(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr, out *hot.NoteOut, e *place) uintptr {
	if !keysOf(peer).Allowed(p.Key, p.Header, p.Len, hot.KeyWrite) {
		return hot.PostGo
	}
	p.Step = stepMoves
	code := sendNote(p, ep, peer, slots, out, true)
	if code != hot.PostDone {
		p.Step = stepBegin
		return code
	}
	e.complete(p, ep.WriteCntr, fi.Write|fi.RMA, p.Len)
	countPost(p, ep, stats.ThreadWrite, 1)
	countPost(p, ep, stats.ThreadWriteBytes, p.Len)
	wakePeer(p, peer)
	return hot.PostDone
}

// noteCopied goes on after the copy.
func noteCopied(p *hot.Post, ep *hot.EP) uintptr {
	if !endCopy(p, ep) {
		return hot.PostGo
	}
	counter, flags := countCopy(p, ep)
	peer, slots := reach(p, ep)
	if peer == nil || sendNote(p, ep, peer, slots, (*hot.NoteOut)(pointer(p.Stream)), true) != hot.PostDone {
		return hot.PostNote
	}
	var e place
	e.find(p, ep)
	e.complete(p, counter, flags, p.Len)
	wakePeer(p, peer)
	return hot.PostDone
}

// sendNote sends a notification, or, without really, checks whether it could be sent.
func sendNote(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr, out *hot.NoteOut, really bool) uintptr {
	if !atomic.CompareAndSwapUint32(&out.Lock, 0, 1) {
		return hot.PostAgain
	}
	code := sendOwn(p, ep, peer, slots, out, really)
	order.Store32(&out.Lock, 0)
	return code
}

// sendOwn does so with the stream's lock.
func sendOwn(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr, out *hot.NoteOut, really bool) uintptr {
	payload := uint64(out.AgentLen) + p.NoteLen
	if out.Open == 0 || atomic.LoadUint32(&out.Waiting) != 0 || out.Slots != slots || payload > uint64(ep.EagerMax) {
		return hot.PostGo
	}
	cost := hot.NoticeCost + payload
	if cost > out.Limit-out.Sent {
		return noCredit(p, ep, out)
	}
	out.Starved = 0
	view := ringOf(peer, slots)
	ring := mpsc.View(&view)
	if !really {
		if outbound.Room(ring, peer.Exclusive != 0) {
			return hot.PostDone
		}
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	head := noticeShortBytes
	switch {
	case p.Step == stepMoves:
		head, payload = noticeMoveBytes, payload+p.Len
	case out.Sent == 0:
		head = noticeHeadBytes
	}
	if int(payload) > hot.SlotBody-head {
		if code := bounce(p, ep, peer, ring, hot.AMNotice); code != hot.PostDone {
			return code
		}
	} else {
		slot, pos, ok := outbound.Claim(ring, peer.Owner, peer.Exclusive != 0)
		if !ok {
			countPost(p, ep, stats.ThreadNoRing, 1)
			return hot.PostAgain
		}
		putNote(p, out, putNotice(p, out, slot, 0))
		publish(p, peer, ring, slot, pos, publishedAs(p, hot.AMNotice))
	}
	out.Sent += cost
	countPost(p, ep, stats.ThreadNote, 1)
	countPost(p, ep, stats.ThreadNoteDirect, 1)
	return hot.PostDone
}

// publishedAs is the id that publish takes for one of a message: of a write that a copy must not overtake.
func publishedAs(p *hot.Post, id uint8) uint8 {
	if id == hot.AMNotice && p.Step == stepMoves {
		return hot.AMWrite
	}
	return id
}

// noCredit is what becomes of a notification for which the receiver has no room: after a time it waits in the runtime,
// which asks for more.
func noCredit(p *hot.Post, ep *hot.EP, out *hot.NoteOut) uintptr {
	waited, timed := since(&out.Starved, p.Now)
	switch {
	case !timed:
		return hot.PostTime
	case waited:
		return hot.PostGo
	}
	countPost(p, ep, stats.ThreadNoRing, 1)
	return hot.PostAgain
}

// putNotice writes all but the payload of a notification into a slot, and returns the address of what follows the head.
// The first of a stream says which that is.
func putNotice(p *hot.Post, out *hot.NoteOut, slot *hot.Slot, flags uint8) uintptr {
	length := out.AgentLen + uint32(p.NoteLen)
	op := uint8(hot.NoticeWrite)
	switch {
	case p.Kind&hot.PostAlone != 0:
		op = hot.NoticeAlone
	case p.Kind&hot.PostRead != 0:
		op = hot.NoticeRead
	}
	if out.Sent != 0 && p.Step != stepMoves {
		outbound.Put(slot, hot.AMNotice, flags, noticeShortBytes, int(length), p.NoteTag)
		h := (*hot.NoticeShort)(unsafe.Pointer(&slot.Body))
		h.Kind, h.Op, h.Agent, h.Rest = hot.NoticeBrief, op, uint8(out.AgentLen), 0
		h.Mark = hot.NoticeMark(out.Stream, out.Sent)
		return bodyOf(slot) + uintptr(noticeShortBytes)
	}
	kind, bytes, payload := uint8(hot.NoticeData), noticeHeadBytes, int(length)
	if p.Step == stepMoves {
		kind, bytes, payload = hot.NoticeMove, noticeMoveBytes, payload+int(p.Len)
		w := (*hot.NoticeWhere)(pointer(bodyOf(slot) + uintptr(noticeHeadBytes)))
		w.Key, w.Addr, w.Bytes = p.Key, p.Header, p.Len
	}
	outbound.Put(slot, hot.AMNotice, flags, bytes, payload, out.Stream)
	h := (*hot.NoticeHead)(unsafe.Pointer(&slot.Body))
	h.Kind, h.Op, h.Agent, h.Ack, h.Status = kind, op, uint8(out.AgentLen), 0, 0
	h.Start, h.Tag, h.Length, h.Offset = out.Sent, p.NoteTag, length, 0
	return bodyOf(slot) + uintptr(bytes)
}

// putNote writes the payload of a notification.
func putNote(p *hot.Post, out *hot.NoteOut, to uintptr) {
	if n := uintptr(out.AgentLen); n != 0 {
		move(to, uintptr(unsafe.Pointer(&out.Agent)), n)
		to += n
	}
	move(to, p.Note, uintptr(p.NoteLen))
	if p.Step == stepMoves {
		move(to+uintptr(p.NoteLen), p.Buf, uintptr(p.Len))
	}
}
