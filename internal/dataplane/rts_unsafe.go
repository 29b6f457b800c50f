package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/outbound"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// Rendezvous without the runtime, at the receiver: takeRTS matches an RTS, or holdRTS keeps it until readUnexpected
// finds the receive that it matches (drain); the shim copies the payload out of the sender's memory, sendAck sends the
// ACK and received completes the receive (proceed). The sender's part is in postlong_unsafe.go, and takeAck.

// takeRTS takes in an RTS and has the shim copy the message out of its sender's memory: one of at most EP.ReadMax
// bytes, for a receive that has room for it. One that matches no receive is kept. All others are the runtime's.
func (r *Receiver) takeRTS(d *hot.Delivery, ep *hot.EP, owner uint32, slot *hot.Slot, m message) uintptr {
	src, addr := sender(ep, owner)
	if src == nil || ep.Flags&hot.EPMatches == 0 || r.Ended {
		return hot.DeliveryGo
	}
	head := *(*hot.RTSHead)(unsafe.Pointer(&slot.Body))
	if m.length() != 0 || m.flags() != 0 || !r.plainRTS(ep, &head, bodyOf(slot)) ||
		m.head() != RTSFixed+16*head.Count {
		return hot.DeliveryGo
	}
	pid := readable(ep, src, addr)
	if pid == 0 {
		return hot.DeliveryGo
	}
	setMessage(d, src, owner, addr, m)
	d.Length, d.Flags, d.Data, d.Request = head.Length, head.Flags, head.Data, head.Request
	rv, known := r.find(ep, d)
	if rv == nil {
		if !known || !holdRTS(r, ep, d, &head) {
			return hot.DeliveryGo
		}
		d.Bounce = 0
		release(d, ep)
		return next
	}
	buf, ok := space(rv, d.Length)
	if !ok {
		return hot.DeliveryGo
	}
	d.Recv = uint64(uintptr(unsafe.Pointer(rv)))
	return r.fetch(d, pid, buf, &head)
}

// readable returns the process of a sender of which the memory can be read and the ring is known here, for the ACK; 0:
// it cannot, or is not. addr is the sender's address (hot.SenderAddr).
func readable(ep *hot.EP, src *hot.Source, addr uint64) (pid uint32) {
	peer, slots := ringBack(ep, src, addr)
	if slots == 0 || revoked(peer) {
		return 0
	}
	return atomic.LoadUint32(&peer.PID)
}

// revoked reports whether a peer has its memory back that it offered with its messages: what was copied out of it
// before this is asked may be anything. Acquire ↔ Iface.Revoke of hw/loopback.
func revoked(peer *hot.Peer) bool {
	return atomic.LoadUint32((*uint32)(pointer(peer.RxState)))&(hot.RxGone|hot.RxRevoked) != 0
}

// fetch has the shim copy the payload of the message at hand, whose RTS has passed plainRTS last, to buf out of another
// process.
func (r *Receiver) fetch(d *hot.Delivery, pid uint32, buf uint64, head *hot.RTSHead) uintptr {
	d.Payload, d.Bounce, d.After = head.Addr, 0, afterRead
	d.Copy.PID, d.Copy.Write = pid, 0
	onePiece(&d.Copy, buf, head.Addr, d.Length)
	if head.Count == 1 {
		return hot.DeliveryRead
	}
	e := &r.elements
	for i := range e.there {
		e.here[i] = fi.IOVec{Base: uintptr(buf), Len: e.there[i].Len}
		buf += e.there[i].Len
	}
	d.Copy.Here, d.Copy.There = uintptr(unsafe.Pointer(&e.here)), uintptr(unsafe.Pointer(&e.there))
	d.Copy.Pieces = uint64(head.Count)
	return hot.DeliveryRead
}

// find returns the receive that was posted first and matches the message at hand, nil if there is none, and leaves it
// in matching. known is false where the runtime has to go through the receives that are posted.
func (r *Receiver) find(ep *hot.EP, d *hot.Delivery) (rv *match.Recv, known bool) {
	eng := r.Engine(d.Flags&hot.MessageTagged != 0)
	if rv = eng.Find(d.ID, d.Tag); rv != nil {
		return rv, true
	}
	rx := context(ep)
	_, queued, known := take(r, rx, eng, headPost(rx), d, false)
	if !queued {
		return nil, known
	}
	return eng.Find(d.ID, d.Tag), true
}

// UnexpectedRTSBytes is how many bytes of Receiver.Pool an RTS that is kept takes: what package receive keeps of one,
// the keys of its elements included, of which a hot.RTSHead is the beginning.
const UnexpectedRTSBytes = RTSBytes + 32*VectorMax

// holdRTS keeps the RTS of the message at hand, which matches no receive, as unexpected. It reports false, and has done
// nothing, where memory has to be mapped first, or the eager window is to be closed.
func holdRTS(r *Receiver, ep *hot.EP, d *hot.Delivery, head *hot.RTSHead) bool {
	memory := KeptMemory(MessageRTS, 0)
	if r.Memory+memory > r.MemoryMax && !r.Closed {
		return false
	}
	at := r.Pool.TryGet(UnexpectedRTSBytes)
	if at == 0 {
		return false
	}
	m := r.Engine(d.Flags&hot.MessageTagged != 0).TryHold(d.ID, d.Tag)
	if m == nil {
		r.Pool.TryPut(at, UnexpectedRTSBytes)
		return false
	}
	d.Flags |= MessageRTS
	describe(d, ep, m, at)
	*(*hot.RTSHead)(pointer(uintptr(at))) = *head
	if head.Count != 1 {
		*elementsAt(uintptr(at)) = r.elements.there
	}
	r.Memory += memory
	if r.Memory > r.MemoryMax {
		r.MemoryOver = true // the window is closed
	}
	countUnexpected(r, ep, context(ep))
	return true
}

// readUnexpected has the shim copy a message, of which the RTS was kept, to the oldest entry of the post ring, if it is
// one that takeRTS would take in for a receive with room for it. Message and entry stay where they are until it is
// read.
func (r *Receiver) readUnexpected(d *hot.Delivery, ep *hot.EP, post *hot.RecvEntry, m *match.Message) uintptr {
	const known = hot.MessageTagged | hot.MessageData | MessageRTS
	head := (*hot.RTSHead)(pointer(uintptr(m.Payload)))
	src, source, addr := senderOf(ep, m)
	if m.Flags&(1<<UnexpectedSourceShift-1)&^known != 0 || src == nil || m.Len > post.Len ||
		!r.plainRTS(ep, head, uintptr(m.Payload)) {
		return hot.DeliveryGo
	}
	pid := readable(ep, src, addr)
	if pid == 0 {
		return hot.DeliveryGo
	}
	setUnexpected(d, m, uint32(m.Flags)&known, source, addr)
	d.Recv = uint64(uintptr(unsafe.Pointer(m)))
	return r.fetch(d, pid, post.Buf, head)
}

// elements are those of the RTS at hand, if it has several, and where the bytes of each go in the receive's buffer. The
// shim reads both.
type elements struct{ there, here [VectorMax]fi.IOVec }

// elementsAt are the elements of an RTS at an address, and what is there behind them.
func elementsAt(rts uintptr) *[VectorMax]fi.IOVec {
	return (*[VectorMax]fi.IOVec)(pointer(rts + RTSFixed))
}

// plainRTS reports whether the shim reads the message of an RTS: one of elements of some bytes, which are all of it.
// head is a copy of what begins the RTS at an address, which the sender may write to: several elements are copied to
// r.elements first.
func (r *Receiver) plainRTS(ep *hot.EP, head *hot.RTSHead, rts uintptr) bool {
	if head.Flags&^(hot.RTSTagged|hot.RTSData) != 0 || head.Length-1 >= uint64(ep.ReadMax) {
		return false
	}
	if head.Count == 1 {
		return head.Element == head.Length && head.Addr+head.Length >= head.Addr
	}
	if head.Count-1 >= VectorMax {
		return false
	}
	there, left := &r.elements.there, head.Length
	*there = *elementsAt(rts)
	for i := range there {
		n := there[i].Len
		switch {
		case uint32(i) >= head.Count:
			there[i] = fi.IOVec{}
		case n-1 >= left || there[i].Base+uintptr(n) < there[i].Base:
			return false
		default:
			left -= n
		}
	}
	return left == 0
}

// back returns the line by which a sender is answered, nil if there is none, or none yet: that of its address, or its
// own if it is a context of a scalable endpoint, or not in the address vector. addr is the sender's address
// (hot.SenderAddr).
func back(ep *hot.EP, src *hot.Source, addr uint64) (peer *hot.Peer) {
	if src.Context != 0 || addr == hot.SenderStranger {
		return (*hot.Peer)(pointer(src.Back))
	}
	_, peer = peerOf(ep, hot.AddrOfSender(addr))
	return peer
}

// fullAddr returns the fi_addr_t of a sender, by which operations to it are posted: it names the receive context, if
// the sender is one of a scalable endpoint. sender is the address of the whole peer (hot.SenderAddr).
func fullAddr(ep *hot.EP, src *hot.Source, sender uint64) uint64 {
	n := atomic.LoadUint32(&ep.Flags) >> hot.EPCtxShift
	addr := hot.AddrOfSender(sender)
	if src.Context>>(n&31) == 0 {
		return addr | uint64(src.Context)<<(64-n)
	}
	return addr // a transmit context, to which nothing is posted
}

// ringBack returns the line by which a message's sender is answered (back) and the slots of its ring, for the ACK; 0:
// it has none that is known here. addr is the sender's address (hot.SenderAddr).
func ringBack(ep *hot.EP, src *hot.Source, addr uint64) (peer *hot.Peer, slots uintptr) {
	if peer = back(ep, src, addr); peer != nil {
		slots = atomic.LoadUintptr(&peer.Slots)
	}
	return peer, slots
}

// sourceAt is the line of the sender with a number.
func sourceAt(ep *hot.EP, number uint32) *hot.Source {
	return (*hot.Source)(pointer(ep.Sources + uintptr(number)*unsafe.Sizeof(hot.Source{})))
}

// sendAck sends the ACK of a message.
func sendAck(d *hot.Delivery, ep *hot.EP) uintptr {
	return reply(d, ep, hot.AMAck, hot.DeliverySendAck)
}

// reply sends the peer that has sent d.Request word that it is done: hot.AMAck of a message or hot.AMRMADone of a
// one-sided operation. Where the peer's ring has no room, the shim has the runtime send it, which full asks for; where
// the peer sleeps, the shim rings its doorbell.
func reply(d *hot.Delivery, ep *hot.EP, id uint8, full uintptr) uintptr {
	peer, slots := ringBack(ep, sourceAt(ep, d.Source), d.Addr)
	if slots == 0 {
		return full
	}
	view := ringOf(peer, slots)
	ring := mpsc.View(&view)
	slot, pos, ok := outbound.Claim(ring, peer.Owner, peer.Exclusive != 0)
	if !ok {
		return full
	}
	head := 8
	h := (*hot.DoneHead)(unsafe.Pointer(&slot.Body))
	if id == hot.AMRMADone {
		head = DoneBytes
		h.Units, h.At = 1, hot.NoPlace
	}
	outbound.Put(slot, id, 0, head, 0, d.Request)
	h.Status = 0 // which is all of the head of an ACK
	ring.Publish(unsafe.Pointer(slot), peer.Owner, pos)
	if sleeps(peer) {
		d.Peer = peer.Peer
		return hot.DeliveryWakePeer
	}
	return next
}

// received completes the receive of a rendezvous whose payload is in its buffer.
func (r *Receiver) received(d *hot.Delivery, ep *hot.EP) uintptr {
	kept := d.Flags&MessageRTS != 0
	var context, flags uint64
	if kept {
		context, flags = endReadUnexpected(r, d, ep)
	} else {
		context, flags = endMatched(r, d)
	}
	buf := d.Copy.Buf
	stat(ep, stats.RxRendezvous, 1)
	stat(ep, stats.RxRendezvousDirect, 1)
	stat(ep, stats.RxRendezvousBytes, d.Length)
	verdict := complete(ep, d, context, flags, buf)
	d.Worked = 1
	if !kept {
		release(d, ep)
	}
	if verdict == Complete {
		return hot.DeliveryComplete
	}
	return next
}

// endMatched takes the receive of the message at hand, which is read, out of matching: the one that find has found, as
// nothing was done in between.
func endMatched(r *Receiver, d *hot.Delivery) (context, flags uint64) {
	eng := r.Engine(d.Flags&hot.MessageTagged != 0)
	rv := eng.Arrive(d.ID, d.Tag)
	context, flags = rv.Context, rv.Flags
	if rv.Kept() {
		rv.User[MultiUsed] += d.Length
		return context, flags&^multiFlag | r.Retire(eng, rv)
	}
	eng.Put(rv)
	return context, flags
}

// endReadUnexpected takes a message that is read, and of which the RTS was kept, out of the queue, and its receive off
// the post ring: those that readUnexpected was given, as nothing was done in between.
func endReadUnexpected(r *Receiver, d *hot.Delivery, ep *hot.EP) (value, flags uint64) {
	rx, m := context(ep), (*match.Message)(pointer(uintptr(d.Recv)))
	post := headPost(rx)
	value, flags = post.Context, post.Flags
	drop(r, ep, rx, post, flags)
	eng := r.Engine(d.Flags&hot.MessageTagged != 0)
	eng.RemoveMessage(m)
	r.forget(eng, m)
	return value, flags
}
