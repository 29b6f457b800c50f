package dataplane

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/mem"
)

// Posted receives that come while messages are unexpected: they take those first. So do searches (search_unsafe.go),
// which come off the post ring in the same order.

// multiFlag is the flag of a receive whose buffer takes several messages.
const multiFlag = fi.MultiRecv

// drain takes receives off the post ring while messages are unexpected, gives them the messages that they match, and
// puts the others into matching, up to a search that is to be made once what has arrived is taken in (begunSearch). It
// returns next, or a code of hot.Delivery.
func (r *Receiver) drain(d *hot.Delivery, ep *hot.EP, rx *hot.Rx) uintptr {
	if r.Ended {
		return hot.DeliveryGo
	}
	for ; d.Budget != 0 && d.Begun != begunSearch; d.Budget-- {
		if to := reader(d); to != nil && to.Left == 0 {
			break
		}
		post := headPost(rx)
		if post == nil {
			break
		}
		if code := r.post(d, ep, rx, post); code != next {
			return code
		}
	}
	d.Budget = batch
	r.PublishWant(rx)
	return next
}

// post gives the oldest entry of the post ring the message that it matches, or puts it into matching.
func (r *Receiver) post(d *hot.Delivery, ep *hot.EP, rx *hot.Rx, post *hot.RecvEntry) uintptr {
	eng := r.Engine(post.Flags&hot.RecvTagged != 0)
	if post.Flags&urgentPost != 0 {
		return search(r, d, ep, rx, eng, post)
	}
	var m *match.Message
	if eng.Unexpected() != 0 {
		id, ok := r.identity(post.Src, post.Flags)
		if !ok {
			return hot.DeliveryGo
		}
		if m, ok = eng.TryPeek(id, post.Tag, post.Ignore); !ok {
			return hot.DeliveryGo
		}
	}
	switch {
	case m != nil && post.Flags&^plainPost != 0:
		return hot.DeliveryGo
	case m != nil:
		return giveMessage(r, d, ep, rx, eng, post, m)
	case !r.Enqueue(post):
		return hot.DeliveryGo
	}
	dropPost(rx, post)
	d.Worked = 1
	return next
}

// giveMessage gives the oldest entry of the post ring, which has one piece of host memory, an unexpected message.
func giveMessage(
	r *Receiver, d *hot.Delivery, ep *hot.EP, rx *hot.Rx, eng *match.Engine, post *hot.RecvEntry, m *match.Message,
) uintptr {
	if m.Flags&MessageRTS != 0 {
		return r.readUnexpected(d, ep, post, m)
	}
	return r.deliverUnexpected(d, ep, rx, eng, post, m)
}

// deliverUnexpected gives an unexpected message to the oldest entry of the post ring, if that is all there is to do.
func (r *Receiver) deliverUnexpected(
	d *hot.Delivery, ep *hot.EP, rx *hot.Rx, eng *match.Engine, post *hot.RecvEntry, m *match.Message,
) uintptr {
	const known = hot.MessageTagged | hot.MessageData | MessageSync | MessageMatch
	flags := m.Flags & (1<<UnexpectedSourceShift - 1)
	if m.Len > mem.MaxShared {
		return hot.DeliveryGo // its memory is a mapping of its own
	}
	src, source, addr := senderOf(ep, m)
	if flags&^known != 0 || m.Len > post.Len || src == nil {
		return hot.DeliveryGo
	}
	payload := uintptr(m.Payload)
	if m.Len <= InWord {
		payload = uintptr(unsafe.Pointer(&m.Payload))
	}
	setUnexpected(d, m, uint32(flags), source, addr)
	context, buf, postFlags := post.Context, post.Buf, post.Flags
	drop(r, ep, rx, post, postFlags)
	move(uintptr(buf), payload, uintptr(m.Len))
	eng.RemoveMessage(m)
	r.forget(eng, m)
	verdict := complete(ep, d, context, postFlags, buf)
	d.Worked = 1
	return endUnexpected(d, ep, verdict, flags&MessageSync != 0)
}

// setUnexpected makes an unexpected message of a source with an address (hot.SenderAddr) the one at hand.
func setUnexpected(d *hot.Delivery, m *match.Message, flags, source uint32, addr uint64) {
	d.Flags, d.Source, d.ID, d.Addr, d.Tag = flags, source, m.Source(), addr, m.Tag()
	d.Length, d.Data, d.Request = m.Len, m.Data, m.Request
}

// senderOf returns the line of the sender of an unexpected message, its number and its address (hot.SenderAddr); nil:
// it is in no line any more, or the message is of another endpoint.
func senderOf(ep *hot.EP, m *match.Message) (src *hot.Source, number uint32, addr uint64) {
	number = uint32(m.Flags>>UnexpectedSourceShift) & 0xffffff
	src, addr = sender(ep, number+1)
	if src == nil || src.ID != m.Source() || m.Flags>>UnexpectedEndpointShift != uint64(ep.Number) {
		return nil, 0, 0
	}
	return src, number, addr
}

// UnexpectedMessages is how many messages are unexpected.
func (r *Receiver) UnexpectedMessages() int { return r.Tagged.Unexpected() + r.Untagged.Unexpected() }

// Posted is how many receives are in matching.
func (r *Receiver) Posted() int { return r.Tagged.Posted() + r.Untagged.Posted() }

// forget frees a message that is out of the queue.
func (r *Receiver) forget(eng *match.Engine, m *match.Message) {
	n := int(m.Len)
	switch {
	case m.Flags&MessageRTS != 0:
		r.Pool.TryPut(m.Payload, UnexpectedRTSBytes)
		n = 0
	case n > InWord:
		r.Pool.TryPut(m.Payload, n)
	}
	r.UnexpectedBytes -= n
	r.Memory -= KeptMemory(uint32(m.Flags), n)
	eng.PutMessage(m)
}

// Reopens reports whether senders that keep their payload may send it again: half of each bound that was exceeded is
// free, and the other is not exceeded.
func (r *Receiver) Reopens() bool {
	return r.Closed && within(r.UnexpectedBytes, r.UnexpectedMax, r.BytesOver) &&
		within(r.Memory, r.MemoryMax, r.MemoryOver)
}
