package dataplane

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/outbound"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
	"github.com/weft-fabric/weft/stripe"
)

// Posting a message. Its way through this file: send checks the peer's line and finds room, short writes the slot and
// makes it visible, wakePeer finds whether the peer needs its doorbell. A payload longer than a slot goes by bounce;
// one too long for that, or that asks for an ACK, is in postlong_unsafe.go. transmit writes one-sided operations.

// messageFlags are the flags of a message that the data plane posts.
const messageFlags = fi.Completion | fi.More | fi.Inject | fi.InjectComplete | fi.TransmitComplete | fi.RemoteCQData

// Values of Post.Step: where a post goes on when the shim calls it again.
const (
	stepBegin = iota
	stepSent  // a path has been asked to send it
	stepCopied
	stepMoves // the write's bytes go in the notification's message
)

// Send posts a message that goes out as a whole, and returns a code of hot.Post. at is the address of a hot.Post.
//
// Room for the message and for its completion is found first, and nothing is taken of either if one has none. So a
// post that is refused leaves no trace, however often it is tried. Then the message goes out and the completion is
// written. Should another thread have taken its place meanwhile, the runtime keeps it until there is room.
func Send(at, _, _, _ uintptr) uintptr { return endPost(at, send(beginPost(at))) }

// Datagram is Send of an endpoint whose messages may be dropped: what finds no room is the runtime's to decide.
// hot.PostRing, behind which a post may have found no room, does not come here: endpoints with a match transport drop
// no messages, and post by Send.
func Datagram(at, _, _, _ uintptr) uintptr {
	code := Send(at, 0, 0, 0)
	if code == hot.PostAgain {
		return hot.PostGo
	}
	return code
}

// unlikely are the kinds of posts that are the runtime's unless single makes them plain, or sendParts posts them:
// vectors, memory of devices.
const unlikely = hot.PostVector | hot.PostDevice

// single makes an operation on a vector of one piece one on that piece. false: it has not one piece, or is of a device.
func single(p *hot.Post) bool {
	if p.Kind&hot.PostDevice != 0 || p.Len != 1 || p.Buf == 0 {
		return false
	}
	piece := (*[2]uint64)(pointer(p.Buf))
	p.Buf, p.Len = uintptr(piece[0]), piece[1]
	p.Kind &^= hot.PostVector
	return true
}

func send(p *hot.Post) uintptr {
	ep := endpoint(p.EP)
	p.Todo, p.Next = 0, 0
	if p.Step == stepSent {
		return sentPath(p, ep)
	}
	if p.Kind&unlikely != 0 {
		if !single(p) {
			return sendParts(p, ep)
		}
	}
	if p.Kind&hot.PostInject != 0 && ep.TxCntr == 0 {
		p.Flags &^= fi.DeliveryComplete // of an injected message only a counter says that it is delivered
	}
	line, peer := peerOf(ep, p.Dest)
	if peer == nil || atomic.LoadUint32(&ep.Flags)&hot.EPFast == 0 || p.Len > uint64(longestEager(p, ep)) ||
		p.Flags&^messageFlags != 0 || p.Buf == 0 && p.Len != 0 {
		return sendAwaited(p, ep)
	}
	slots := atomic.LoadUintptr(&peer.Slots)
	if slots == 0 {
		return sendPath(p, ep, line)
	}
	if state := atomic.LoadUint32((*uint32)(pointer(peer.RxState))); state&(hot.RxOpen|hot.RxGone) != hot.RxOpen {
		return sendAwaited(p, ep)
	}
	var e place
	if completes(p, ep) && !e.vacant(p, ep) {
		return hot.PostAgain
	}
	view := ringOf(peer, slots)
	var code uintptr
	messages := uintptr(stats.ThreadInline)
	if head := messageHead(p); p.Len <= uint64(hot.SlotBody-head) {
		code = short(p, ep, peer, mpsc.View(&view), messageID(p), head)
	} else {
		code = bounce(p, ep, peer, mpsc.View(&view), messageID(p))
		messages = stats.ThreadBounce
	}
	if code != hot.PostDone {
		return code
	}
	countMessage(ep.StatsThreads, p.Thread, messages, p.Len)
	if e.at|ep.TxCntr != 0 {
		e.complete(p, ep.TxCntr, fi.Send|kindFlag(p), p.Len)
	}
	wakePeer(p, peer)
	return hot.PostDone
}

// SendHere is Send of a message of one piece of host memory to a peer of this host, from an endpoint, for a goroutine:
// nothing is asked of a shim but what Post.Todo says. With hot.PostGo nothing has happened, and the runtime sends it.
func SendHere(ep *hot.EP, p *hot.Post) uintptr {
	at := uintptr(unsafe.Pointer(p))
	p.EP, p.Step, p.Now, p.Todo = uintptr(unsafe.Pointer(ep)), stepBegin, 0, 0
	beginPost(at).Thread = goroutine
	return endPost(at, sendHere(p, ep))
}

func sendHere(p *hot.Post, ep *hot.EP) uintptr {
	if _, peer := peerOf(ep, p.Dest); peer == nil || atomic.LoadUintptr(&peer.Slots) == 0 {
		return hot.PostGo
	}
	if code := send(p); code < hot.PostGo {
		return code
	}
	return hot.PostGo // also where the runtime has taken the ring away since, or no bounce buffer is free
}

// longestEager is how many bytes a message goes with, as far as the endpoint decides.
func longestEager(p *hot.Post, ep *hot.EP) uint32 {
	if p.Kind&hot.PostInject != 0 || p.Flags&fi.Inject != 0 {
		return min(ep.EagerMax, ep.InjectMax)
	}
	return ep.EagerMax
}

// kindFlag is what the completion of a message says of its kind.
func kindFlag(p *hot.Post) uint64 {
	if p.Kind&hot.PostTagged != 0 {
		return fi.Tagged
	}
	return fi.Msg
}

// posts reports whether the endpoint posts without the runtime: it is enabled, and no order makes it wait.
func posts(ep *hot.EP) bool { return atomic.LoadUint32(&ep.Flags)&hot.EPFast != 0 }

// plausible reports whether the buffer may be one, and is not too long to be injected.
func plausible(p *hot.Post, ep *hot.EP) bool {
	injected := p.Kind&hot.PostInject != 0 || p.Flags&fi.Inject != 0
	return (p.Buf != 0 || p.Len == 0) && (!injected || p.Len <= uint64(ep.InjectMax))
}

// peerOf returns the line of an address in the endpoint's table, nil if there is none, or none yet. The address may
// name a context of the peer in its high bits.
func peerOf(ep *hot.EP, addr uint64) (line uint64, peer *hot.Peer) {
	line = bits.RotateLeft64(addr, int(atomic.LoadUint32(&ep.Flags)>>hot.EPCtxShift))
	if line >= atomic.LoadUint64(&ep.PeerLimit) {
		return 0, nil
	}
	return line, (*hot.Peer)(pointer(ep.Peers + uintptr(line)*unsafe.Sizeof(hot.Peer{})))
}

// ringOf is the peer's inbound ring, whose slots are at an address.
func ringOf(peer *hot.Peer, slots uintptr) hot.Ring {
	return hot.Ring{Slots: slots, Tail: peer.Tail, Log2Slots: uint32(peer.Log2Slots), SlotBytes: hot.SlotBytes}
}

// short writes a message that fits a slot of the ring, with a head of so many bytes.
func short(p *hot.Post, ep *hot.EP, peer *hot.Peer, ring *mpsc.Ring, id uint8, head int) uintptr {
	slot, pos, ok := outbound.Claim(ring, peer.Owner, peer.Exclusive != 0)
	if !ok {
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	move(putMessage(p, slot, id, 0, head), p.Buf, uintptr(p.Len))
	ring.Publish(unsafe.Pointer(slot), peer.Owner, pos)
	p.Next = uintptr(ring.Slot(pos + ahead))
	return hot.PostDone
}

// messageHead is how many bytes stand before the payload of a message: its data.
func messageHead(p *hot.Post) int { return int(p.Kind & hot.PostData / hot.PostData * 8) }

// putMessage writes all but the payload of a message into a slot, and returns the address of what follows the head.
func putMessage(p *hot.Post, slot *hot.Slot, id, flags uint8, head int) uintptr {
	outbound.Put(slot, id, flags, head, int(p.Len), p.Header)
	body := bodyOf(slot)
	if head != 0 {
		*(*uint64)(pointer(body)) = p.Data
	}
	return body + uintptr(head)
}

// transmit writes a one-sided operation into the peer's ring as one active message, through a bounce buffer if it is
// too long for the slot. id is hot.AMWrite or hot.AMAtomic.
func transmit(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr, id uint8) uintptr {
	view := ringOf(peer, slots)
	ring := mpsc.View(&view)
	if !inSlot(p, id) {
		return bounce(p, ep, peer, ring, id)
	}
	return inline(p, ep, peer, ring, id)
}

// inline writes a one-sided operation that fits a slot.
func inline(p *hot.Post, ep *hot.EP, peer *hot.Peer, ring *mpsc.Ring, id uint8) uintptr {
	slot, pos, ok := outbound.Claim(ring, peer.Owner, peer.Exclusive != 0)
	if !ok {
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	await(p, ep, ring, id)
	putPayload(p, id, putHead(p, slot, id, 0))
	publish(p, peer, ring, slot, pos, id)
	return hot.PostDone
}

// inSlot reports whether an operation fits a slot of the ring.
func inSlot(p *hot.Post, id uint8) bool {
	return payloadBytes(p, id) <= uint64(hot.SlotBody-headBytes(p, id))
}

// payloadBytes is how many bytes stand behind the head.
func payloadBytes(p *hot.Post, id uint8) uint64 {
	switch id {
	case hot.AMRead:
		return 0
	case hot.AMAtomic:
		operand, compare := operands(p)
		return operand + compare
	}
	return p.Len
}

// putPayload writes what stands behind the head.
func putPayload(p *hot.Post, id uint8, to uintptr) {
	switch id {
	case hot.AMNotice:
		putNote(p, (*hot.NoteOut)(pointer(p.Stream)), to)
	case hot.AMRead:
	case hot.AMAtomic:
		putOperands(p, to)
	default:
		move(to, p.Buf, uintptr(p.Len))
	}
}

// fill writes what stands behind the head into a bounce buffer of a leased stripe.
func fill(p *hot.Post, id uint8, s *hot.Stripe, b *hot.Bounce) {
	if id == hot.AMNotice || id == hot.AMAtomic {
		putPayload(p, id, outbound.Payload(b))
		return
	}
	outbound.Fill(s, b, p.Buf, uintptr(p.Len))
}

// headBytes is how many bytes stand before the payload.
func headBytes(p *hot.Post, id uint8) int {
	data := p.Kind&hot.PostData != 0
	switch {
	case id == hot.AMSync:
		return SyncBytes
	case id == hot.AMAtomic:
		return atomicHeadBytes
	case id == hot.AMRead:
		return readHeadBytes
	case id == hot.AMWrite && data:
		return hot.WriteHeadDataBytes
	case id == hot.AMWrite:
		return hot.WriteHeadBytes
	}
	return messageHead(p)
}

// messageID is the active message that a message goes as.
func messageID(p *hot.Post) uint8 {
	id := uint8(hot.AMMsg)
	if p.Kind&hot.PostTagged != 0 {
		id = hot.AMTag
	}
	return id + uint8(p.Kind&hot.PostData/hot.PostData)
}

// putHead writes all but the payload into a slot, and returns the address of what follows the head.
func putHead(p *hot.Post, slot *hot.Slot, id, flags uint8) uintptr {
	switch id {
	case hot.AMNotice:
		return putNotice(p, (*hot.NoteOut)(pointer(p.Stream)), slot, flags)
	case hot.AMAtomic:
		return putAtomic(p, slot, flags)
	case hot.AMRead:
		return putRead(p, slot)
	case hot.AMWrite:
		return putWrite(p, slot, flags)
	}
	return putMessage(p, slot, id, flags, messageHead(p))
}

// putWrite is putHead of a write.
func putWrite(p *hot.Post, slot *hot.Slot, flags uint8) uintptr {
	head := headBytes(p, hot.AMWrite)
	outbound.Put(slot, hot.AMWrite, flags, head, int(p.Len), p.Header)
	words := (*[5]uint64)(unsafe.Pointer(&slot.Body))
	asks := uint64(hot.WriteLast)
	if p.Request != 0 {
		asks |= hot.WriteAck
	}
	if p.Kind&hot.PostData != 0 {
		asks |= hot.WriteData
		words[3], words[4] = p.Data, p.Len
	}
	words[0], words[1], words[2] = p.Key, p.Request, asks
	return bodyOf(slot) + uintptr(head)
}

// publish makes a slot visible to the peer. Peer.Put keeps the position behind the last one-sided operation: a copy to
// or from the peer's memory is not made before the peer has released that slot (overtakes).
func publish(p *hot.Post, peer *hot.Peer, ring *mpsc.Ring, slot *hot.Slot, pos uint64, id uint8) {
	ring.Publish(unsafe.Pointer(slot), peer.Owner, pos)
	if id == hot.AMWrite || id == hot.AMAtomic {
		order.Store64(&peer.Put, pos+1)
	}
	p.Next = uintptr(ring.Slot(pos + ahead))
}

// sentAwaited is called when an operation is sent whose answer a request or a hot.Pending waits for. slots are those of
// the peer's ring. If the peer is lost now, either the runtime, which takes the ring out of the peer's line and then
// reads what waits, finds this one, or the line is found without its ring here.
func sentAwaited(p *hot.Post, peer *hot.Peer, slots uintptr) {
	order.Fence()
	if atomic.LoadUintptr(&peer.Slots) != slots {
		p.Todo |= hot.TodoPeerLost
	}
}

// ahead is how far ahead of a message the next slots are fetched. Further ahead the receiver's own prefetching takes
// them back before they are used.
const ahead = 4

// bounce sends an operation through a bounce buffer.
func bounce(p *hot.Post, ep *hot.EP, peer *hot.Peer, ring *mpsc.Ring, id uint8) uintptr {
	if !roomIn(p, ep, peer, ring) {
		return hot.PostAgain
	}
	stripe := takeStripe(p, ep)
	if stripe == nil {
		return hot.PostAgain
	}
	code := bounceBy(p, ep, peer, ring, id, stripe)
	giveStripe(ep, stripe)
	return code
}

// roomIn reports whether a peer's ring has room, before a payload is copied in vain.
func roomIn(p *hot.Post, ep *hot.EP, peer *hot.Peer, ring *mpsc.Ring) bool {
	if outbound.Room(ring, peer.Exclusive != 0) {
		return true
	}
	countPost(p, ep, stats.ThreadNoRing, 1)
	return false
}

// bounceBy sends an operation through a bounce buffer of a leased stripe.
func bounceBy(p *hot.Post, ep *hot.EP, peer *hot.Peer, ring *mpsc.Ring, id uint8, stripe *hot.Stripe) uintptr {
	b, index := outbound.FreeBounce(stripe)
	if b == nil {
		return noBounce(p, ep, stripe, id)
	}
	stripe.Starved = 0
	fill(p, id, stripe, b)
	slot, pos, ok := outbound.Claim(ring, peer.Owner, peer.Exclusive != 0)
	if !ok { // the buffer was not marked: it is still free
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	await(p, ep, ring, id)
	outbound.Mark(b, peer.Owner, peer.Peer)
	at := putHead(p, slot, id, hot.SlotBounce)
	*(*hot.BounceRef)(pointer(at)) = hot.BounceRef{Index: index}
	publish(p, peer, ring, slot, pos, publishedAs(p, id))
	p.Next = outbound.NextBounce(stripe)
	return hot.PostDone
}

// noBounce returns the code for an operation for which a leased stripe has no free bounce buffer. A one-sided one is
// the runtime's. A message is tried again, and is the runtime's, which sends an RTS, when no buffer has been free for
// hot.StarvedMillis.
func noBounce(p *hot.Post, ep *hot.EP, s *hot.Stripe, id uint8) uintptr {
	if id == hot.AMWrite || id == hot.AMAtomic {
		return hot.PostGo
	}
	starved, timed := Starved(s, p.Now)
	switch {
	case !timed:
		return hot.PostTime
	case starved:
		return hot.PostGo
	}
	countPost(p, ep, stats.ThreadNoBounce, 1)
	return hot.PostAgain
}

// Starved reports of a leased stripe that has no free bounce buffer whether it has had none for hot.StarvedMillis. now
// is in ms of CLOCK_MONOTONIC_COARSE; if it is 0, which is no time, nothing happens and timed is false.
func Starved(s *hot.Stripe, now uint32) (starved, timed bool) {
	return since(&s.Starved, now)
}

// since reports whether hot.StarvedMillis have passed between *began and now, and sets *began to now if it is 0. now
// and timed are those of Starved.
func since(began *uint32, now uint32) (long, timed bool) {
	if now == 0 {
		return false, false
	}
	if *began == 0 {
		*began = now
	}
	return now-*began >= hot.StarvedMillis, true
}

// takeStripe leases the stripe that the thread prefers, or the next free one; nil: all are taken.
func takeStripe(p *hot.Post, ep *hot.EP) *hot.Stripe {
	preferred := p.Thread & ep.StripeMask
	if ep.Flags&hot.EPExclusive != 0 {
		return stripeAt(ep, preferred)
	}
	for n := range ep.StripeMask + 1 {
		s := stripeAt(ep, (preferred+n)&ep.StripeMask)
		if stripe.Take(s) {
			return s
		}
	}
	countPost(p, ep, stats.ThreadNoStripe, 1)
	return nil
}

// giveStripe gives back the lease that takeStripe took.
func giveStripe(ep *hot.EP, s *hot.Stripe) {
	if ep.Flags&hot.EPExclusive == 0 {
		stripe.Give(s)
	}
}

// stripeAt views stripe n of the endpoint.
func stripeAt(ep *hot.EP, n uint32) *hot.Stripe {
	return (*hot.Stripe)(pointer(ep.Stripes + uintptr(n)*unsafe.Sizeof(hot.Stripe{})))
}

// countPost adds to the thread's line of the endpoint's counters.
func countPost(p *hot.Post, ep *hot.EP, what uintptr, n uint64) {
	countThread(ep.StatsThreads, p.Thread, what, n)
}

// wakePeer has the shim ring the doorbell of a peer that sleeps. The fence pairs with the one in the sleeper between
// arming and the last poll of the ring. Whether a receiver can sleep at all is read without a fence, but after
// publishing: the receiver has every processor that runs a sender pass a barrier (membarrier) before it arms for the
// first time, so either its last poll of the ring finds the message, or this finds the bit.
func wakePeer(p *hot.Post, peer *hot.Peer) {
	if sleeps(peer) {
		p.Todo |= hot.TodoWakePeer
		p.Peer = peer.Peer
	}
}

// sleeps reports whether a peer is asleep, or about to be: its segment's armed word, behind a fence.
func sleeps(peer *hot.Peer) bool {
	state := (*[2]uint32)(pointer(peer.RxState)) // and armed
	if atomic.LoadUint32(&state[0])&hot.RxWaitable == 0 {
		return false
	}
	order.Fence()
	return atomic.LoadUint32(&state[1]) != 0
}
