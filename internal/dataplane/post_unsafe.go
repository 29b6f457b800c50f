package dataplane

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hot"
	"github.com/weft-fabric/weft/hw/loopback/outbound"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// messageFlags are the flags of a message that the data plane posts.
const messageFlags = fi.Completion | fi.More | fi.Inject | fi.InjectComplete | fi.TransmitComplete | fi.RemoteCQData

// Values of Post.Step.
const (
	stepBegin = iota
	stepSent  // a path has been asked to send it
	stepCopied
)

// Send posts a message that goes out as a whole, and returns a code of hot.Post. p is the address of a hot.Post.
//
// Room for the message and for its completion is looked for first, and nothing is taken of either if one has none. So a
// post that is refused leaves no trace, however often it is tried. Then the message goes out and the completion is
// written. Should another thread have taken its place meanwhile, the runtime keeps it until there is room.
func Send(p, _, _, _ uintptr) uintptr { return send((*hot.Post)(pointer(p))) }

func send(p *hot.Post) uintptr {
	ep := endpoint(p.EP)
	p.Todo, p.Next = 0, 0
	if p.Step == stepSent {
		return sentPath(p, ep)
	}
	line, peer := peerOf(ep, p.Dest)
	if peer == nil || !posts(ep) || p.Len > uint64(ep.EagerMax) || p.Flags&^messageFlags != 0 || !plausible(p, ep) {
		return hot.PostGo
	}
	slots := atomic.LoadUintptr(&peer.Slots)
	if slots == 0 {
		return sendPath(p, ep, line)
	}
	if state := atomic.LoadUint32((*uint32)(pointer(peer.RxState))); state&(hot.RxOpen|hot.RxGone) != hot.RxOpen {
		return hot.PostGo
	}
	var e place
	if !e.room(p, ep) {
		return hot.PostAgain
	}
	if code := sendSlot(p, ep, peer, slots); code != hot.PostDone {
		return code
	}
	e.complete(p, ep.TxCntr, fi.Send|kindFlag(p), p.Len)
	wakePeer(p, peer)
	return hot.PostDone
}

// kindFlag is what the completion of a message says of its kind.
func kindFlag(p *hot.Post) uint64 {
	if p.Kind&hot.PostTagged != 0 {
		return fi.Tagged
	}
	return fi.Msg
}

// posts tells whether the endpoint may post without the runtime.
func posts(ep *hot.EP) bool { return atomic.LoadUint32(&ep.Flags)&hot.EPFast != 0 }

// plausible tells whether the buffer may be one, and is not too long to be injected.
func plausible(p *hot.Post, ep *hot.EP) bool {
	injected := p.Kind&hot.PostInject != 0 || p.Flags&fi.Inject != 0
	return (p.Buf != 0 || p.Len == 0) && (!injected || p.Len <= uint64(ep.InjectMax))
}

// peerOf returns the line of an address in the endpoint's table, nil if there is none. The address may name a context of
// the peer in its high bits.
func peerOf(ep *hot.EP, addr uint64) (line uint64, peer *hot.Peer) {
	line = bits.RotateLeft64(addr, int(atomic.LoadUint32(&ep.Flags)>>hot.EPCtxShift))
	if line >= ep.PeerLimit {
		return 0, nil
	}
	return line, (*hot.Peer)(pointer(ep.Peers + uintptr(line)*unsafe.Sizeof(hot.Peer{})))
}

// ringOf is the peer's inbound ring, whose slots are at an address.
func ringOf(peer *hot.Peer, slots uintptr) hot.Ring {
	return hot.Ring{Slots: slots, Tail: peer.Tail, Log2Slots: uint32(peer.Log2Slots), SlotBytes: hot.SlotBytes}
}

// sendSlot writes a message into the peer's ring, through a bounce buffer if it is too long for the slot.
func sendSlot(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr) uintptr {
	view := ringOf(peer, slots)
	ring := mpsc.View(&view)
	if p.Len+uint64(headBytes(p)) > hot.SlotBody {
		return sendBounced(p, ep, peer, ring)
	}
	slot, pos, ok := outbound.Claim(ring, peer.Owner, peer.Exclusive != 0)
	if !ok {
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	move(putMessage(p, slot, 0), p.Buf, uintptr(p.Len))
	publish(p, peer, ring, slot, pos)
	countPost(p, ep, stats.ThreadInline, 1)
	countPost(p, ep, stats.ThreadInlineBytes, p.Len)
	return hot.PostDone
}

// headBytes is how many bytes stand before a message's payload.
func headBytes(p *hot.Post) int {
	if p.Kind&hot.PostData != 0 {
		return 8
	}
	return 0
}

// messageID is the active message that a message goes as.
func messageID(p *hot.Post) uint8 {
	id := uint8(hot.AMMsg)
	if p.Kind&hot.PostTagged != 0 {
		id = hot.AMTag
	}
	return id + uint8(p.Kind&hot.PostData/hot.PostData)
}

// putMessage writes all but the payload into a slot, and returns the address of what follows the head.
func putMessage(p *hot.Post, slot *hot.Slot, flags uint8) uintptr {
	head := headBytes(p)
	outbound.Put(slot, messageID(p), flags, head, int(p.Len), p.Header)
	body := uintptr(unsafe.Pointer(&slot.Body))
	if head != 0 {
		*(*uint64)(pointer(body)) = p.Data
	}
	return body + uintptr(head)
}

// publish makes a slot visible to the peer.
func publish(p *hot.Post, peer *hot.Peer, ring *mpsc.Ring, slot *hot.Slot, pos uint64) {
	ring.Publish(unsafe.Pointer(slot), peer.Owner, pos)
	p.Next = uintptr(ring.Slot(pos + ahead))
}

// ahead is how far ahead of a message the next slots are fetched. Further ahead the receiver's own prefetching takes
// them back before they are used.
const ahead = 4

// sendBounced sends a message through a bounce buffer.
func sendBounced(p *hot.Post, ep *hot.EP, peer *hot.Peer, ring *mpsc.Ring) uintptr {
	exclusive := peer.Exclusive != 0
	if !outbound.Room(ring, exclusive) {
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	stripe := takeStripe(p, ep)
	if stripe == nil {
		return hot.PostAgain
	}
	b, index := outbound.FreeBounce(stripe)
	if b == nil {
		starved, timed := Starved(stripe, p.Now)
		giveStripe(ep, stripe)
		switch {
		case !timed:
			return hot.PostTime
		case starved:
			return hot.PostGo // which announces it
		}
		countPost(p, ep, stats.ThreadNoBounce, 1)
		return hot.PostAgain
	}
	stripe.Starved = 0
	move(outbound.Payload(b), p.Buf, uintptr(p.Len))
	slot, pos, ok := outbound.Claim(ring, peer.Owner, exclusive)
	if ok {
		outbound.Mark(b, peer.Owner, peer.Peer)
		at := putMessage(p, slot, hot.SlotBounce)
		*(*hot.BounceRef)(pointer(at)) = hot.BounceRef{Index: index}
		publish(p, peer, ring, slot, pos)
		p.Next = outbound.NextBounce(stripe)
	}
	giveStripe(ep, stripe)
	if !ok { // the buffer was not marked: it is still free
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	countPost(p, ep, stats.ThreadBounce, 1)
	countPost(p, ep, stats.ThreadBounceBytes, p.Len)
	return hot.PostDone
}

// Starved tells, when a leased stripe has no free bounce buffer at the time now, coarse milliseconds, whether it has had
// none for hot.StarvedMillis. timed is false if now is 0, which is no time.
func Starved(s *hot.Stripe, now uint32) (starved, timed bool) {
	if now == 0 {
		return false, false
	}
	if s.Starved == 0 {
		s.Starved = now
	}
	return now-s.Starved >= hot.StarvedMillis, true
}

// takeStripe leases the stripe that the thread prefers, or the next free one; nil: all are taken.
func takeStripe(p *hot.Post, ep *hot.EP) *hot.Stripe {
	preferred := p.Thread & ep.StripeMask
	if ep.Flags&hot.EPExclusive != 0 {
		return stripeAt(ep, preferred)
	}
	for n := range ep.StripeMask + 1 {
		s := stripeAt(ep, (preferred+n)&ep.StripeMask)
		if atomic.CompareAndSwapUint32(&s.Lease, 0, 1) {
			return s
		}
	}
	countPost(p, ep, stats.ThreadNoStripe, 1)
	return nil
}

func giveStripe(ep *hot.EP, s *hot.Stripe) {
	if ep.Flags&hot.EPExclusive == 0 {
		order.Store32(&s.Lease, 0)
	}
}

func stripeAt(ep *hot.EP, n uint32) *hot.Stripe {
	return (*hot.Stripe)(pointer(ep.Stripes + uintptr(n)*unsafe.Sizeof(hot.Stripe{})))
}

// countPost adds to the thread's line of the endpoint's counters; threads for which there is none left share the last.
func countPost(p *hot.Post, ep *hot.EP, what uintptr, n uint64) {
	if p.Thread >= stats.Lines-1 {
		atomic.AddUint64((*uint64)(pointer(ep.StatsThreads+((stats.Lines-1)*stats.LineWords+what)*8)), n)
		return
	}
	word := (*uint64)(pointer(ep.StatsThreads + (uintptr(p.Thread)*stats.LineWords+what)*8))
	order.Store64(word, atomic.LoadUint64(word)+n)
}

// wakePeer has the shim ring the doorbell of a peer that sleeps. The fence pairs with the one between arming and the
// last look at the ring in the sleeper. That a receiver can sleep at all is looked at without a fence, but after
// publishing: the receiver has every processor that runs a sender pass a barrier (membarrier) before it may arm for the
// first time, so either its last look at the ring finds the message, or this finds the bit.
func wakePeer(p *hot.Post, peer *hot.Peer) {
	if sleeps(peer) {
		p.Todo |= hot.TodoWakePeer
		p.Peer = peer.Peer
	}
}

func sleeps(peer *hot.Peer) bool {
	state := (*[2]uint32)(pointer(peer.RxState)) // and armed
	if atomic.LoadUint32(&state[0])&hot.RxWaitable == 0 {
		return false
	}
	order.Fence()
	return atomic.LoadUint32(&state[1]) != 0
}
