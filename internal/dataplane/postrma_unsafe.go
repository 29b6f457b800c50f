package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hot"
	"github.com/weft-fabric/weft/hw/loopback/outbound"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// One-sided operations that need one message in the peer's ring. The peer's key table is mapped here, so a key, a range
// or a right that the peer does not have is found before anything is sent; such an operation is the runtime's, which has
// the peer refuse it in so many words. The peer looks again when the message arrives. What it refuses then, because the
// region was closed in between, is known to nobody here any more if the operation has completed: that is what
// FI_TRANSMIT_COMPLETE promises, and FI_DELIVERY_COMPLETE is the runtime's.

// bodyOf is the address of a slot's body.
func bodyOf(slot *hot.Slot) uintptr { return uintptr(unsafe.Pointer(&slot.Body)) }

// onesided returns the peer of a one-sided operation and the slots of its ring; 0: it is the runtime's.
func onesided(p *hot.Post, ep *hot.EP) (peer *hot.Peer, slots uintptr) {
	if !posts(ep) || ep.FetchCount == 0 {
		return nil, 0
	}
	line, peer := peerOf(ep, p.Dest)
	if peer == nil {
		return nil, 0
	}
	p.Line = uint32(line)
	slots = atomic.LoadUintptr(&peer.Slots)
	if slots == 0 || atomic.LoadUint32((*uint32)(pointer(peer.RxState)))&hot.RxGone != 0 {
		return nil, 0
	}
	return peer, slots
}

// keysOf is the peer's key table.
func keysOf(peer *hot.Peer) outbound.Keys { return outbound.Keys{At: peer.Keys, Count: peer.KeyCount} }

// Write posts a write as a message, if it fits a slot of the peer's ring or is not worth a system call. It completes
// when it is there; one that is to complete later is the runtime's. p is the address of a hot.Post, the result one of
// its codes.
func Write(p, _, _, _ uintptr) uintptr { return write((*hot.Post)(pointer(p))) }

func write(p *hot.Post) uintptr {
	ep := endpoint(p.EP)
	p.Todo, p.Next = 0, 0
	head := writeHead(p)
	inSlot := p.Len <= uint64(hot.SlotBody-head)
	if p.Len == 0 || p.Buf == 0 || p.Flags&^messageFlags != 0 || !plausible(p, ep) ||
		!inSlot && (p.Len >= hot.CopyMinWrite || p.Len > uint64(ep.EagerMax)) {
		return hot.PostGo
	}
	peer, slots := onesided(p, ep)
	if peer == nil || !keysOf(peer).Allowed(p.Key, p.Header, p.Len, hot.KeyWrite) {
		return hot.PostGo
	}
	var e place
	if !e.room(p, ep) {
		return hot.PostAgain
	}
	view := ringOf(peer, slots)
	code := writeSlot(p, ep, peer, mpsc.View(&view), head, inSlot)
	if code != hot.PostDone {
		return code
	}
	e.complete(p, ep.WriteCntr, fi.Write|fi.RMA, p.Len)
	countPost(p, ep, stats.ThreadWrite, 1)
	countPost(p, ep, stats.ThreadWriteBytes, p.Len)
	wakePeer(p, peer)
	return hot.PostDone
}

// writeHead is how many bytes stand before a write's payload.
func writeHead(p *hot.Post) int {
	if p.Kind&hot.PostData != 0 {
		return hot.WriteHeadDataBytes
	}
	return hot.WriteHeadBytes
}

// putWrite writes the head of a write into a slot and returns the address of what follows.
func putWrite(p *hot.Post, slot *hot.Slot, flags uint8, head int) uintptr {
	outbound.Put(slot, hot.AMWrite, flags, head, int(p.Len), p.Header)
	words := (*[5]uint64)(unsafe.Pointer(&slot.Body))
	words[0], words[1], words[2] = p.Key, 0, hot.WriteLast
	if p.Kind&hot.PostData != 0 {
		words[2], words[3], words[4] = hot.WriteLast|hot.WriteData, p.Data, p.Len
	}
	return bodyOf(slot) + uintptr(head)
}

// writeSlot writes the message into the ring.
func writeSlot(p *hot.Post, ep *hot.EP, peer *hot.Peer, ring *mpsc.Ring, head int, inSlot bool) uintptr {
	exclusive := peer.Exclusive != 0
	if !inSlot {
		return writeBounced(p, ep, peer, ring, head)
	}
	slot, pos, ok := outbound.Claim(ring, peer.Owner, exclusive)
	if !ok {
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	move(putWrite(p, slot, 0, head), p.Buf, uintptr(p.Len))
	publishPut(p, peer, ring, slot, pos)
	return hot.PostDone
}

// publishPut publishes a slot of a one-sided operation: a copy to or from the peer's memory waits for it.
func publishPut(p *hot.Post, peer *hot.Peer, ring *mpsc.Ring, slot *hot.Slot, pos uint64) {
	publish(p, peer, ring, slot, pos)
	order.Store64(&peer.Put, pos+1)
}

// writeBounced sends a write through a bounce buffer.
func writeBounced(p *hot.Post, ep *hot.EP, peer *hot.Peer, ring *mpsc.Ring, head int) uintptr {
	exclusive := peer.Exclusive != 0
	if !outbound.Room(ring, exclusive) {
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	stripe := takeStripe(p, ep)
	if stripe == nil {
		return hot.PostAgain
	}
	code := uintptr(hot.PostGo)
	if b, index := outbound.FreeBounce(stripe); b != nil {
		stripe.Starved = 0
		move(outbound.Payload(b), p.Buf, uintptr(p.Len))
		code = hot.PostAgain
		if slot, pos, ok := outbound.Claim(ring, peer.Owner, exclusive); ok {
			outbound.Mark(b, peer.Owner, peer.Peer)
			at := putWrite(p, slot, hot.SlotBounce, head)
			*(*hot.BounceRef)(pointer(at)) = hot.BounceRef{Index: index}
			publishPut(p, peer, ring, slot, pos)
			p.Next = outbound.NextBounce(stripe)
			code = hot.PostDone
		}
	}
	giveStripe(ep, stripe)
	return code
}
