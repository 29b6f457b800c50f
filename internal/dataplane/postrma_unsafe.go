package dataplane

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw/loopback/outbound"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// One-sided operations that need one message in the peer's ring. The peer's key table is mapped here, so a key, a
// range or a right that the peer does not have is found before anything is sent; such an operation is the runtime's,
// which has the peer refuse it in so many words. The peer checks again when the message arrives. What it refuses
// then, because the region was closed in between, is not known here any more if the operation has completed: that is
// what FI_TRANSMIT_COMPLETE promises. One with FI_DELIVERY_COMPLETE waits for the peer's answer (pending_unsafe.go).

// onesided returns the peer of a one-sided operation and the slots of its ring; 0: it is the runtime's.
func onesided(p *hot.Post, ep *hot.EP) (peer *hot.Peer, slots uintptr) {
	if ep.PendingCount == 0 {
		return nil, 0
	}
	return reach(p, ep)
}

// reach returns the peer of an operation that it need not be ready for, and the slots of its ring; 0: it is the
// runtime's.
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

// RMA posts a read or a write of one piece: a write as a message, if that is right for it, and what else can be one as
// a copy. at is the address of a hot.Post, the result one of its codes.
func RMA(at, _, _, _ uintptr) uintptr { return endPost(at, rma(beginPost(at))) }

func rma(p *hot.Post) uintptr {
	if p.Step == stepCopied {
		return postCopy(p)
	}
	if p.Kind&(unlikely|hot.PostRemote) != 0 && !singleRMA(p) {
		p.Todo, p.Next = 0, 0
		return hot.PostGo
	}
	if p.Kind&hot.PostRead == 0 {
		if code := write(p); code != hot.PostGo || p.Kind&hot.PostData != 0 {
			return code
		}
	}
	return postCopy(p)
}

// singleRMA is single for the pieces on both sides, which are as long as each other.
func singleRMA(p *hot.Post) bool {
	if p.Kind&unlikely != 0 && !single(p) {
		return false
	}
	if p.Kind&hot.PostRemote == 0 {
		return true
	}
	if p.Remotes != 1 || p.Remote == 0 {
		return false
	}
	piece := (*[3]uint64)(pointer(p.Remote)) // struct fi_rma_iov
	if piece[1] != p.Len {
		return false
	}
	p.Header, p.Key = piece[0], piece[2]
	p.Kind &^= hot.PostRemote
	return true
}

// write posts a write as a message, if it fits a slot of the peer's ring or is not worth a system call. It completes
// when it is there, or when the peer has answered that it is delivered.
func write(p *hot.Post) uintptr {
	ep := endpoint(p.EP)
	p.Todo, p.Next, p.Request = 0, 0, 0
	if p.Len == 0 || p.Buf == 0 || p.Flags&^(messageFlags|fi.DeliveryComplete) != 0 || !plausible(p, ep) ||
		!inSlot(p, hot.AMWrite) && (p.Len >= hot.CopyMinWrite || p.Len > uint64(ep.EagerMax)) {
		return hot.PostGo
	}
	peer, slots := onesided(p, ep)
	if peer == nil || !keysOf(peer).Allowed(p.Key, p.Header, p.Len, hot.KeyWrite) {
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

// written counts a write that is sent, and wakes the peer.
func written(p *hot.Post, ep *hot.EP, peer *hot.Peer) {
	countPost(p, ep, stats.ThreadWrite, 1)
	countPost(p, ep, stats.ThreadWriteBytes, p.Len)
	wakePeer(p, peer)
}

// postAwaited sends an operation that the peer answers: a hot.AMWrite or hot.AMAtomic.
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
