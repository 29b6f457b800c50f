package dataplane

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw/loopback/outbound"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
)

// One-sided operations that need one message in the peer's ring. The peer's key table is mapped here, so a key, a range
// or a right that the peer does not have is found before anything is sent; such an operation is the runtime's, which
// has the peer refuse it in so many words. The peer looks again when the message arrives. What it refuses then, because
// the region was closed in between, is known to nobody here any more if the operation has completed: that is what
// FI_TRANSMIT_COMPLETE promises, and FI_DELIVERY_COMPLETE is the runtime's.

// onesided returns the peer of a one-sided operation and the slots of its ring; 0: it is the runtime's.
func onesided(p *hot.Post, ep *hot.EP) (peer *hot.Peer, slots uintptr) {
	if ep.FetchCount == 0 {
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
	if p.Len == 0 || p.Buf == 0 || p.Flags&^messageFlags != 0 || !plausible(p, ep) ||
		!inSlot(p, hot.AMWrite) && (p.Len >= hot.CopyMinWrite || p.Len > uint64(ep.EagerMax)) {
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
	if code := transmit(p, ep, peer, slots, hot.AMWrite); code != hot.PostDone {
		return code
	}
	e.complete(p, ep.WriteCntr, fi.Write|fi.RMA, p.Len)
	countPost(p, ep, stats.ThreadWrite, 1)
	countPost(p, ep, stats.ThreadWriteBytes, p.Len)
	wakePeer(p, peer)
	return hot.PostDone
}
