package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/outbound"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// One-sided operations that need one message in the peer's ring. The peer's key table is mapped here, so a key, a
// range or a right that the peer does not have is found before anything is sent; such an operation is the runtime's,
// which sends it, so that the peer's answer says why. The peer checks again when the message arrives. What it refuses
// then, because the region was closed in between, is not known here any more if the operation has completed: that is
// what FI_TRANSMIT_COMPLETE promises. One with FI_DELIVERY_COMPLETE waits for the peer's answer (pending_unsafe.go).

// onesided returns the peer of a one-sided operation and the slots of its ring; 0: it is the runtime's.
func onesided(p *hot.Post, ep *hot.EP) (peer *hot.Peer, slots uintptr) {
	if ep.PendingCount == 0 {
		return nil, 0
	}
	return reach(p, ep)
}

// reach returns the peer of an operation that needs no room for messages there, and the slots of its ring; 0: it is
// the runtime's.
func reach(p *hot.Post, ep *hot.EP) (peer *hot.Peer, slots uintptr) {
	if !posts(ep) {
		return nil, 0
	}
	_, peer = peerOf(ep, p.Dest)
	if peer == nil {
		return nil, 0
	}
	slots = atomic.LoadUintptr(&peer.Slots)
	if slots == 0 || atomic.LoadUint32((*uint32)(pointer(peer.RxState)))&hot.RxGone != 0 {
		return nil, 0
	}
	return peer, slots
}

// keysOf is the peer's key table.
func keysOf(peer *hot.Peer) outbound.Keys { return outbound.Keys{At: peer.Keys, Count: peer.KeyCount} }

// writeMessage posts a write of at most EP.EagerMax bytes as a message. It completes when it is there, or when the peer
// has answered that it is delivered.
func writeMessage(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr) uintptr {
	if !keysOf(peer).Allowed(p.Key, p.Header, p.Len, hot.KeyWrite) {
		return hot.PostGo
	}
	if awaitsDelivery(p, ep) {
		code := postAwaited(p, ep, peer, slots, hot.AMWrite)
		if code == hot.PostDone {
			written(p, ep, peer)
		}
		return code
	}
	var e place
	if !e.room(p, ep) {
		return hot.PostAgain
	}
	if code := transmit(p, ep, peer, slots, hot.AMWrite); code != hot.PostDone {
		return code
	}
	e.complete(p, ep.WriteCntr, fi.Write|fi.RMA, p.Len)
	written(p, ep, peer)
	return hot.PostDone
}

// asMessage posts as a message a read or a write that, as a copy, would be done before an earlier message to the peer.
func asMessage(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr) uintptr {
	p.Request = 0
	switch {
	case p.Len > uint64(ep.EagerMax):
		return hot.PostGo
	case p.Kind&hot.PostRead == 0:
		return writeMessage(p, ep, peer, slots)
	case !keysOf(peer).Allowed(p.Key, p.Header, p.Len, hot.KeyRead):
		return hot.PostGo
	}
	p.Result = p.Buf
	code := postAwaited(p, ep, peer, slots, hot.AMRead)
	if code == hot.PostDone {
		countPost(p, ep, stats.ThreadRead, 1)
		countPost(p, ep, stats.ThreadReadBytes, p.Len)
		wakePeer(p, peer)
	}
	return code
}

// notify sends word of a write with data that is copied. False: the peer's ring has no room, or is gone.
func notify(p *hot.Post, ep *hot.EP) bool {
	peer, slots := reach(p, ep)
	if peer == nil {
		return false
	}
	view := ringOf(peer, slots)
	ring := mpsc.View(&view)
	slot, pos, ok := outbound.Claim(ring, peer.Owner, peer.Exclusive != 0)
	if !ok {
		countPost(p, ep, stats.ThreadNoRing, 1)
		return false
	}
	outbound.Put(slot, hot.AMNotify, 0, hot.WriteHeadDataBytes, 0, p.Header)
	h := (*hot.WriteHead)(unsafe.Pointer(&slot.Body))
	h.Key, h.Request, h.Flags, h.Data, h.Length = p.Key, 0, hot.WriteData|hot.WriteLast, p.Data, p.Len
	publish(p, peer, ring, slot, pos, hot.AMNotify)
	wakePeer(p, peer)
	return true
}

// written counts a write that is sent, and wakes the peer.
func written(p *hot.Post, ep *hot.EP, peer *hot.Peer) {
	countPost(p, ep, stats.ThreadWrite, 1)
	countPost(p, ep, stats.ThreadWriteBytes, p.Len)
	wakePeer(p, peer)
}

// postAwaited sends an operation that the peer answers: a hot.AMWrite, hot.AMRead or hot.AMAtomic.
func postAwaited(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr, id uint8) uintptr {
	view := ringOf(peer, slots)
	ring := mpsc.View(&view)
	if !roomIn(p, ep, peer, ring) {
		return hot.PostAgain
	}
	stripe := takeStripe(p, ep)
	if stripe == nil {
		return hot.PostAgain
	}
	code := uintptr(hot.PostAgain)
	switch {
	case !takePending(p, ep, stripe):
	case inSlot(p, id):
		code = inline(p, ep, peer, ring, id)
	default:
		code = bounceBy(p, ep, peer, ring, id, stripe)
	}
	giveStripe(ep, stripe)
	if code == hot.PostDone {
		sentAwaited(p, peer, slots)
	}
	return code
}
