package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// Taking arrivals off the inbound rings of an endpoint. deliver goes through the rings (takeIn), reads each slot once
// (takeOne) and gives a message to matching (takeMessage), one whose sender waits for it to sync_unsafe.go, an RTS or
// ACK to rts_unsafe.go, a one-sided operation to serve_unsafe.go, a notification to notes_unsafe.go. What none of them
// takes stays at the head of its ring for the runtime (DeliveryGo).

// batch is how many arrivals of one ring one call takes, so that others get their turn.
const batch = 64

// Values of Delivery.After: what is done with the message at hand before the next one.
const (
	afterNothing    = iota
	afterSlot       // it is taken in: its bounce buffer and its slot are free
	afterRead       // the shim has copied its payload into the receive's buffer (DeliveryRead), or has failed
	afterAcked      // and the ACK is sent
	afterSync       // its receive is complete: the ACK is to be sent, and its bounce buffer and its slot are free
	afterUnexpected // likewise of a message that was unexpected, which has neither
)

// Values of Delivery.Begun.
const (
	begunNot   = iota
	begunPosts // receives are taken off the post ring
	begunRings // arrivals are taken off the inbound rings
	// begunSearch: likewise, all that were there when a search, the oldest entry of the post ring, found nothing; then
	// it is made again
	begunSearch
	// begunAll: likewise, all that were there when it began, and nothing is taken off the post ring before
	begunAll
)

// next is no code for the shim: the step at hand is done, and the caller in this package goes on with the next one.
const next = ^uintptr(0)

// Begin prepares a delivery to an endpoint for Deliver. Completions go to its queues.
func Begin(d *hot.Delivery, ep *hot.EP) {
	d.EP, d.Reader, d.TxReader = uintptr(unsafe.Pointer(ep)), 0, 0
	clearDelivery(d)
}

// BeginAll is Begin of a delivery that takes in all that has arrived, and no posted receives before that. The caller
// holds the progress lease.
func BeginAll(d *hot.Delivery, ep *hot.EP) {
	Begin(d, ep)
	beginRings(d, ep, context(ep))
	d.Begun = begunAll
	d.Budget = budget(d, ep)
}

// Deliver takes in the arrivals of an endpoint for a goroutine, with what is a thread's: it returns a code of
// hot.Delivery, and is called again after each but DeliveryDone and DeliveryGo. The caller holds the progress lease,
// and does at the end what Delivery.Todo says.
func Deliver(d *hot.Delivery, t *hot.Thread) uintptr {
	if !resume(t) {
		return hot.DeliveryGo
	}
	code := deliver(d)
	pause(t)
	return code
}

// deliver takes in the arrivals of an endpoint, and returns a code of hot.Delivery, where it is said how to go on.
// The caller holds the progress lease.
func deliver(d *hot.Delivery) uintptr {
	ep := endpoint(d.EP)
	rx := context(ep)
	r := ReceiverOf(rx)
	if r == nil {
		return hot.DeliveryGo
	}
	if d.Begun != begunNot {
		behindOlder(d)
	}
	if d.After != afterNothing {
		if code := proceed(d, ep, r); code != next {
			return left(d, ep, code)
		}
		stopFull(d)
	}
	if d.Begun == begunNot {
		beginRings(d, ep, rx)
		if atomic.LoadUint32(&rx.WantPosts) != 0 {
			d.Begun, d.Unexpected = begunPosts, uint32(r.UnexpectedMessages())
		}
	}
	if d.Begun == begunPosts {
		if code := takePosts(d, ep, rx, r); code != next {
			return left(d, ep, code)
		}
		stopFull(d)
	}
	if code := takeIn(d, ep, r); code != next {
		return left(d, ep, code)
	}
	if d.Begun == begunSearch && !full(d) {
		if code := searchAgain(r, d, ep, rx); code != next {
			return left(d, ep, code)
		}
	}
	rx.Turn = d.Ring // behind the last, for one that has more than fits the reader
	return end(d, ep)
}

// behindOlder has completions go to the queues from here on, if the one that is read has some by now, which are to be
// read before: of receives that the runtime has completed since, or errors.
func behindOlder(d *hot.Delivery) {
	to := d.Reader | d.TxReader // if both are set they are the same
	if to != 0 && hasOlder((*hot.CQ)(pointer((*hot.Reader)(pointer(to)).CQ))) {
		d.Reader, d.TxReader = 0, 0
	}
}

// beginRings begins with the ring behind the last one.
func beginRings(d *hot.Delivery, ep *hot.EP, rx *hot.Rx) {
	d.Begun, d.Budget, d.Rings, d.Ring = begunRings, batch, rxRings(ep), rx.Turn
	if d.Ring >= d.Rings {
		d.Ring = 0
	}
}

// takePosts takes posted receives, while there are unexpected messages, before what is on the rings.
func takePosts(d *hot.Delivery, ep *hot.EP, rx *hot.Rx, r *Receiver) uintptr {
	if atomic.LoadUint32(&rx.WantPosts) != 0 {
		if code := r.drain(d, ep, rx); code != next {
			return code
		}
		if d.Begun == begunSearch {
			d.Budget = budget(d, ep)
			return next
		}
		// An application that posts a receive for each message and has fallen behind its sender would have all messages
		// unexpected, for ever, if more were taken in now: what is on the rings waits for its receives.
		if r.Posted() == 0 && r.UnexpectedMessages() < int(d.Unexpected) {
			d.Rings = 0
		}
	}
	d.Begun = begunRings
	return next
}

// end counts what was delivered, and says whether that was all there is to do.
func end(d *hot.Delivery, ep *hot.EP) uintptr {
	if d.Worked == 0 {
		return hot.DeliveryGo
	}
	countTaken(d, ep)
	return hot.DeliveryDone
}

// left is a code that a step of a delivery has returned: with hot.DeliveryGo the delivery is over.
func left(d *hot.Delivery, ep *hot.EP, code uintptr) uintptr {
	if code == hot.DeliveryGo {
		countTaken(d, ep)
	}
	return code
}

// countTaken counts what a delivery has taken in, once it is over.
func countTaken(d *hot.Delivery, ep *hot.EP) {
	if d.Messages != 0 {
		countDirect(ep, d.Messages, d.Bytes)
		d.Messages, d.Bytes = 0, 0
	}
}

// The words of countDirect follow one another.
var (
	_ [0]struct{} = [stats.RxDirectBytes - stats.RxDirect - 1]struct{}{}
	_ [0]struct{} = [stats.RxDirectBatches - stats.RxDirect - 2]struct{}{}
)

// countDirect counts messages of so many bytes together that were delivered in one go.
func countDirect(ep *hot.EP, messages, bytes uint64) {
	line := (*[3]uint64)(pointer(ep.StatsRx + stats.RxDirect*8))
	order.Store64(&line[0], line[0]+messages)
	order.Store64(&line[1], line[1]+bytes)
	order.Store64(&line[2], line[2]+1)
}

// rxRings is how many inbound rings are in use. Senders write the number.
func rxRings(ep *hot.EP) uint32 { return min(ringsInUse(ep), hot.RxRings) }

// budget is how many arrivals of the ring at hand are taken in. For a search it is all that there may be now.
func budget(d *hot.Delivery, ep *hot.EP) uint32 {
	if d.Begun >= begunSearch {
		return 1 << (inbound(d, ep).Ring.Log2Slots & 31)
	}
	return batch
}

// inbound returns the ring at hand.
func inbound(d *hot.Delivery, ep *hot.EP) *hot.Inbound { return &ep.Inbound[d.Ring%hot.RxRings] }

// reader returns where completions of receives go, nil: the queue.
func reader(d *hot.Delivery) *hot.Reader { return (*hot.Reader)(pointer(d.Reader)) }

// full reports whether the reader has no room for more.
func full(d *hot.Delivery) bool {
	to := d.Reader | d.TxReader // if both are set they are the same
	return to != 0 && (*hot.Reader)(pointer(to)).Left == 0
}

// stopFull leaves what is on the rings there if the reader has no room for more.
func stopFull(d *hot.Delivery) {
	if full(d) {
		d.Rings = 0
	}
}

// proceed goes on after the code that the last call returned.
func proceed(d *hot.Delivery, ep *hot.EP, r *Receiver) uintptr {
	was := d.After
	d.After = afterNothing
	switch was {
	case afterSlot:
		release(d, ep)
	case afterRead:
		peer := back(ep, sourceAt(ep, d.Source), d.Addr)
		if copyFailed(&d.Copy, peer) || peer != nil && revoked(peer) {
			return hot.DeliveryGo
		}
		if code := sendAck(d, ep); code != next {
			d.After = afterAcked
			return code
		}
		return r.received(d, ep)
	case afterAcked:
		return r.received(d, ep)
	case afterSync:
		return endSync(d, ep)
	case afterUnexpected:
		return sendAck(d, ep)
	}
	return next
}

// release frees the bounce buffer and the slot of the message at hand.
func release(d *hot.Delivery, ep *hot.EP) {
	freeBounce(d)
	mpsc.Pass(inbound(d, ep))
	d.Worked = 1
}

// freeBounce frees the bounce buffer of the message at hand, if it is in one.
func freeBounce(d *hot.Delivery) {
	if d.Bounce != 0 {
		order.Store32((*uint32)(pointer(uintptr(d.Bounce))), 0)
	}
}

// takeIn takes in what is on the rings that are left, from the head of the one at hand on.
func takeIn(d *hot.Delivery, ep *hot.EP, r *Receiver) uintptr {
	for ; d.Rings != 0; nextRing(d, ep) {
		in := inbound(d, ep)
		for ; d.Budget != 0; d.Budget-- {
			slot, owner := mpsc.Next(in)
			if slot == nil {
				if d.Stream != 0 && d.Polls < linger {
					d.Polls++
					return hot.DeliveryPause
				}
				break
			}
			if code := takeOne(d, ep, r, owner, (*hot.Slot)(slot)); code != next {
				if code != hot.DeliveryGo {
					d.Budget--
				}
				return code
			}
			if full(d) {
				d.Rings = 1 // the last one
				break
			}
		}
	}
	return next
}

// nextRing makes the next ring the one at hand.
func nextRing(d *hot.Delivery, ep *hot.EP) {
	if d.Ring++; d.Ring >= rxRings(ep) {
		d.Ring = 0
	}
	d.Stream = 0
	if d.Rings--; d.Rings != 0 {
		d.Budget = budget(d, ep)
	}
}

// takeOne takes in one arrival, or returns the code for what does: the shim or the runtime.
func takeOne(d *hot.Delivery, ep *hot.EP, r *Receiver, owner uint32, slot *hot.Slot) uintptr {
	m := messageIn(slot)
	switch {
	case m.id()-hot.AMMsg <= hot.AMTagData-hot.AMMsg:
		return r.takeMessage(d, ep, owner, slot, m)
	case m.id() == hot.AMRTS:
		return r.takeRTS(d, ep, owner, slot, m)
	case m.id() == hot.AMSync:
		return takeSync(r, d, ep, owner, slot, m)
	case m.id() == hot.AMAck:
		return takeAck(d, ep, owner, slot, m)
	case ep.PendingCount != 0 && isOneSided(m.id()):
		return serve(d, ep, owner, slot, m)
	case m.id() == hot.AMNotice && ep.Notes != 0:
		return takeNotice(d, ep, owner, slot, m)
	}
	return hot.DeliveryGo
}

// message is what a slot says of the message in it, read once.
type message struct{ word, header uint64 }

// messageIn reads what a slot says.
func messageIn(slot *hot.Slot) message {
	return message{atomic.LoadUint64((*uint64)(unsafe.Pointer(&slot.AMID))), atomic.LoadUint64(&slot.Header)}
}

func (m message) id() uint8      { return uint8(m.word) }
func (m message) flags() uint8   { return uint8(m.word >> 8) }
func (m message) head() uint32   { return uint32(uint16(m.word >> 16)) } // bytes
func (m message) length() uint32 { return uint32(m.word >> 32) }         // bytes of payload

// sender returns the line of a sender and its address (hot.SenderAddr), nil if the runtime has not filled the line:
// then the sender is new, or the address vector has changed.
func sender(ep *hot.EP, owner uint32) (*hot.Source, uint64) {
	if owner-1 >= ep.SourceLimit {
		return nil, 0
	}
	src := sourceAt(ep, owner-1)
	addr := atomic.LoadUint64(&src.Addr)
	if addr == hot.SenderUnknown {
		return nil, 0
	}
	return src, addr
}

// takeMessage takes in a message whose payload is in the slot or in a bounce buffer, by matching (Accept).
func (r *Receiver) takeMessage(d *hot.Delivery, ep *hot.EP, owner uint32, slot *hot.Slot, m message) uintptr {
	src, addr := sender(ep, owner)
	if src == nil || ep.Flags&hot.EPMatches == 0 {
		return hot.DeliveryGo
	}
	setMessage(d, src, owner, addr, m)
	flags, head, data := uint32(0), uint32(0), uint64(0)
	if m.id() >= hot.AMTag {
		flags = hot.MessageTagged
	}
	if (m.id()-hot.AMMsg)&1 != 0 {
		flags, head, data = flags|hot.MessageData, 8, *(*uint64)(unsafe.Pointer(&slot.Body))
	}
	d.Flags, d.Data = flags, data
	if m.head() != head {
		return hot.DeliveryGo
	}
	if d.Payload = uint64(payloadOf(d, src, owner, slot, m)); d.Payload == 0 {
		return hot.DeliveryGo
	}
	verdict := r.Accept(ep, d)
	switch verdict {
	case Delivered, Complete, Unexpected:
		d.Messages++
		d.Bytes += d.Length
		freeBounce(d)
		mpsc.Pass(inbound(d, ep))
		d.Worked = 1
		if verdict == Complete {
			return hot.DeliveryComplete
		}
	case Settle:
		d.After = afterSlot
		return hot.DeliverySettle
	case Refused:
		return hot.DeliveryGo
	}
	return next
}

// payloadOf returns the address of the payload of the message in a slot, behind its head, and notes its bounce buffer.
// 0: what the slot says of it is wrong.
func payloadOf(d *hot.Delivery, src *hot.Source, owner uint32, slot *hot.Slot, m message) uintptr {
	d.Bounce = 0
	at := bodyOf(slot) + uintptr(m.head())
	switch m.flags() {
	case 0:
		if m.length() <= hot.SlotBody-m.head() {
			return at
		}
	case hot.SlotBounce:
		return bounced(d, src, owner, at, m.length())
	}
	return 0
}

// bounced returns the address of a payload of length bytes in the bounce buffer of the sender's segment whose number is
// at an address, 0 if number, length or the buffer's mark is wrong: the runtime logs that.
func bounced(d *hot.Delivery, src *hot.Source, owner uint32, at uintptr, length uint32) uintptr {
	index := atomic.LoadUint32((*uint32)(pointer(at)))
	if src.Bounce == 0 || index >= src.BounceCount || length > src.BounceBytes {
		return 0
	}
	b := (*hot.Bounce)(pointer(src.Bounce + uintptr(index)*uintptr(src.BounceStride)))
	if atomic.LoadUint32(&b.State) != owner {
		return 0
	}
	d.Bounce = uint64(uintptr(unsafe.Pointer(b)))
	return uintptr(d.Bounce) + unsafe.Sizeof(*b)
}

// setMessage makes the message in a slot the one at hand, as far as its sender's line, its address (hot.SenderAddr) and
// the slot say what it is; the rest is the caller's to set.
func setMessage(d *hot.Delivery, src *hot.Source, owner uint32, addr uint64, m message) {
	d.ID, d.Number, d.Source, d.Addr, d.Tag, d.Length = src.ID, src.Context, owner-1, addr, m.header, uint64(m.length())
}
