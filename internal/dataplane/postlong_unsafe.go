package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw/loopback/outbound"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// Posting a message of which the payload stays here until its receiver has read it: an RTS, and a request that waits
// for the ACK (requests_unsafe.go). It is one piece of the process's own memory, for a peer of this host. Of any
// completion level it completes with the ACK.

// rtsFlags are the flags of such a message.
const rtsFlags = messageFlags&^fi.Inject | fi.DeliveryComplete | fi.MatchComplete

// rendezvous posts a message that is too long to go with its payload, or that its receiver takes no payload of now.
func rendezvous(p *hot.Post, ep *hot.EP) uintptr {
	if p.Len-1 >= ep.RTSMax || p.Buf == 0 || p.Buf>>63 != 0 || p.Kind&hot.PostInject != 0 || p.Flags&^rtsFlags != 0 {
		return hot.PostGo
	}
	peer, slots := reach(p, ep)
	if peer == nil || !isLong(p, ep, peer) || !rtsCounts(p, ep) {
		return hot.PostGo
	}
	link := atomic.LoadUint32(&peer.Link) - 1 // one without a number is beyond all
	if linkAt(ep, link) == nil {
		return hot.PostGo
	}
	s := takeStripe(p, ep)
	if s == nil {
		return hot.PostAgain
	}
	code := sendRTS(p, ep, peer, slots, s, link)
	giveStripe(ep, s)
	if code == hot.PostDone {
		countPost(p, ep, stats.ThreadRendezvous, 1)
		countPost(p, ep, stats.ThreadRendezvousBytes, p.Len)
		countPost(p, ep, stats.ThreadRTSDirect, 1)
		wakePeer(p, peer)
	}
	return code
}

// isLong reports whether a message does not go with its payload: it is too long, or the peer takes none. One that does,
// and waits for its receiver, is the runtime's.
func isLong(p *hot.Post, ep *hot.EP, peer *hot.Peer) bool {
	return p.Len > uint64(ep.EagerMax) || atomic.LoadUint32((*uint32)(pointer(peer.RxState)))&hot.RxOpen == 0
}

// rtsCounts reports whether the bytes of a message may be counted here; if not, the runtime is to do so now, with
// this message (provider/pages).
func rtsCounts(p *hot.Post, ep *hot.EP) bool {
	return p.Len < hot.AccessMin || atomic.LoadUint64(&ep.RTSBytes) < ep.RTSBytesMax
}

// sendRTS makes the request, and sends its RTS. The stripe is leased. A slot of the ring is claimed before the request
// is live, so nothing is to be taken back from there on.
func sendRTS(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr, s *hot.Stripe, number uint32) uintptr {
	view := ringOf(peer, slots)
	ring, exclusive := mpsc.View(&view), peer.Exclusive != 0
	if !outbound.Room(ring, exclusive) {
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	table := requestsOf(ep)
	req, id, ok := table.Alloc(int((uintptr(unsafe.Pointer(s)) - ep.Stripes) / unsafe.Sizeof(*s)))
	if !ok {
		countPost(p, ep, stats.ThreadNoRequest, 1)
		return hot.PostAgain
	}
	// The removal of a link takes its number from the lines, and then reads what is in flight: either that finds this
	// request, or the number is found gone here.
	link := linkAt(ep, number)
	link.InFlight.Add(1)
	if atomic.LoadUint32(&peer.Link) != number+1 {
		link.InFlight.Add(-1)
		table.Free(id)
		return hot.PostGo
	}
	slot, pos, ok := outbound.Claim(ring, peer.Owner, exclusive)
	if !ok {
		link.InFlight.Add(-1)
		table.Free(id)
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	beginRequest(p, ep, req, number, slots)
	order.Store32((*uint32)(unsafe.Pointer(&req.Live)), uint32(id>>32))
	putRTS(p, slot, id)
	publish(p, peer, ring, slot, pos, hot.AMRTS)
	if p.Len >= hot.AccessMin {
		order.Store64(&ep.RTSBytes, atomic.LoadUint64(&ep.RTSBytes)+p.Len)
	}
	// As in sendFetch: if the peer is lost now, either the runtime finds this request, or the line is found without its
	// ring here.
	order.Fence()
	if atomic.LoadUintptr(&peer.Slots) != slots {
		p.Todo |= hot.TodoPeerLost
	}
	return hot.PostDone
}

// beginRequest fills a request.
func beginRequest(p *hot.Post, ep *hot.EP, req *Request, link uint32, ring uintptr) {
	completes := ep.TxCQ != 0 && (ep.Flags&hot.EPTxAlways != 0 || p.Flags&fi.Completion != 0)
	req.Begin(p.Context, p.Len, RequestFlags(p.Kind&hot.PostTagged != 0, completes), link)
	req.Count, req.Ring = 1, ring
	req.IOV[0].Base, req.IOV[0].Len = p.Buf, p.Len
}

// putRTS writes the RTS of a message of one element into a slot.
func putRTS(p *hot.Post, slot *hot.Slot, id uint64) {
	outbound.Put(slot, hot.AMRTS, 0, int(unsafe.Sizeof(hot.RTSHead{})), 0, p.Header)
	piece := [1]fi.IOVec{{Base: p.Buf, Len: p.Len}}
	flags := RTSFlags(p.Kind&hot.PostTagged != 0, p.Kind&hot.PostData != 0)
	PutRTS((*[RTSBytes]byte)(pointer(bodyOf(slot))), id, p.Len, p.Data, flags, piece[:])
}
