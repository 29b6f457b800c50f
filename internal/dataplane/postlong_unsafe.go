package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/outbound"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// Posting a message that completes with its receiver's ACK, and a request that waits for it (requests_unsafe.go): a
// rendezvous, of which an RTS goes out and the payload stays here until its receiver has read it, of any completion
// level; or one with its payload (hot.AMSync), of the levels delivery and match. It is for a peer of this host, of the
// process's own memory: one piece, or of a rendezvous up to VectorMax.

// awaitedFlags are the flags of such a message.
const awaitedFlags = messageFlags&^fi.Inject | fi.DeliveryComplete | fi.MatchComplete

// sendAwaited posts a message that is too long to go with its payload, that its receiver takes no payload of now, or
// that asks for an ACK. It leaves to the runtime what send has not posted for another reason: the address has no line
// yet, the endpoint may not post. A message that a device matches is sendMatched's.
func sendAwaited(p *hot.Post, ep *hot.EP) uintptr {
	if t := matchOf(ep); t != nil {
		return sendMatched(p, t)
	}
	if p.Kind&hot.PostInject != 0 || p.Flags&^awaitedFlags != 0 || ep.RTSMax == 0 {
		return hot.PostGo
	}
	peer, slots := reach(p, ep)
	if peer == nil {
		return hot.PostGo
	}
	id := awaitedAs(p, ep, peer)
	if id == 0 {
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
	code := sendRequest(p, ep, peer, slots, s, link, id)
	giveStripe(ep, s)
	if code != hot.PostDone {
		return code
	}
	if id == hot.AMSync {
		countPost(p, ep, stats.ThreadSync, 1)
		countPost(p, ep, stats.ThreadSyncBytes, p.Len)
	} else {
		countPost(p, ep, stats.ThreadRendezvous, 1)
		countPost(p, ep, stats.ThreadRendezvousBytes, p.Len)
	}
	wakePeer(p, peer)
	return code
}

// sendParts posts a message of several pieces that is too long to go with its payload. The runtime gathers the pieces
// of others.
func sendParts(p *hot.Post, ep *hot.EP) uintptr {
	if p.Kind&hot.PostDevice != 0 || p.Len-1 >= VectorMax || p.Buf == 0 || matchOf(ep) != nil {
		return hot.PostGo
	}
	p.Compare, p.Compares = p.Buf, p.Len
	parts, total := partsOf(p), uint64(0)
	for i := range parts {
		v := &parts[i]
		if v.Base == 0 || v.Base>>63 != 0 || v.Len-1 >= ep.RTSMax {
			return hot.PostGo
		}
		total += v.Len
	}
	if total <= uint64(ep.EagerMax) {
		return hot.PostGo
	}
	p.Buf, p.Len = parts[0].Base, total
	code := sendAwaited(p, ep)
	p.Buf, p.Len = p.Compare, p.Compares
	return code
}

// partsOf returns the pieces of a message that sendAwaited posts: the one at p.Buf, or those of sendParts.
func partsOf(p *hot.Post) []fi.IOVec {
	if p.Kind&hot.PostVector != 0 {
		return unsafe.Slice((*fi.IOVec)(pointer(p.Compare)), p.Compares)
	}
	return (*[1]fi.IOVec)(unsafe.Pointer(&p.Buf))[:]
}

// awaitedAs is the active message that a message goes as, which completes with its ACK: with its payload, if that is
// not too long and the peer takes any. 0: it is the runtime's.
func awaitedAs(p *hot.Post, ep *hot.EP, peer *hot.Peer) uint8 {
	open := atomic.LoadUint32((*uint32)(pointer(peer.RxState)))&hot.RxOpen != 0
	switch {
	case open && p.Len <= uint64(ep.EagerMax):
		if plausible(p, ep) && p.Flags&(fi.DeliveryComplete|fi.MatchComplete) != 0 {
			return hot.AMSync
		}
	case p.Len-1 < ep.RTSMax && p.Buf != 0 && p.Buf>>63 == 0 && rtsCounts(p, ep):
		return hot.AMRTS
	}
	return 0
}

// rtsCounts reports whether the bytes of a message may be counted here; if not, the runtime is to do so now, with
// this message (provider/internal/pages).
func rtsCounts(p *hot.Post, ep *hot.EP) bool {
	return p.Len < hot.AccessMin || atomic.LoadUint64(&ep.RTSBytes) < ep.RTSBytesMax
}

// sendRequest makes the request, and sends its RTS, or its message with its payload (am is awaitedAs'). The stripe is
// leased. A slot of the ring is claimed before the request is live, so nothing is to be taken back from there on.
func sendRequest(
	p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr, s *hot.Stripe, number uint32, am uint8,
) uintptr {
	view := ringOf(peer, slots)
	ring, exclusive := mpsc.View(&view), peer.Exclusive != 0
	if !outbound.Room(ring, exclusive) {
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	var b *hot.Bounce
	var index uint32
	if am == hot.AMSync && !inSlot(p, am) {
		if b, index = outbound.FreeBounce(s); b == nil {
			return noBounce(p, ep, s, am)
		}
		s.Starved = 0
		outbound.Fill(s, b, p.Buf, uintptr(p.Len))
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
	parts := partsOf(p)
	beginRequest(p, ep, req, number, slots, parts)
	if am == hot.AMRTS {
		req.Flags |= RequestRTS
	}
	order.Store32((*uint32)(unsafe.Pointer(&req.Live)), uint32(id>>32))
	if am == hot.AMSync {
		putSync(p, peer, slot, id, b, index)
	} else {
		putRTS(p, slot, id, parts)
	}
	publish(p, peer, ring, slot, pos, am)
	if b != nil {
		p.Next = outbound.NextBounce(s)
	}
	if am == hot.AMRTS && p.Len >= hot.AccessMin {
		order.Store64(&ep.RTSBytes, atomic.LoadUint64(&ep.RTSBytes)+p.Len)
	}
	sentAwaited(p, peer, slots)
	return hot.PostDone
}

// beginRequest fills a request.
func beginRequest(p *hot.Post, ep *hot.EP, req *Request, link uint32, ring uintptr, parts []fi.IOVec) {
	completes := ep.TxCQ != 0 && (ep.Flags&hot.EPTxAlways != 0 || p.Flags&fi.Completion != 0)
	req.Begin(p.Context, p.Len, RequestFlags(p.Kind&hot.PostTagged != 0, completes), link)
	req.Count, req.Ring = uint32(len(parts)), ring
	for i := range min(len(parts), VectorMax) {
		req.IOV[i] = parts[i]
	}
}

// putRTS writes the RTS of a message into a slot.
func putRTS(p *hot.Post, slot *hot.Slot, id uint64, parts []fi.IOVec) {
	flags := RTSFlags(p.Kind&hot.PostTagged != 0, p.Kind&hot.PostData != 0)
	n := PutRTS((*[RTSBytes]byte)(pointer(bodyOf(slot))), id, p.Len, p.Data, flags, parts)
	outbound.Put(slot, hot.AMRTS, 0, n, 0, p.Header)
}

// putSync writes a message that asks for an ACK into a slot. Its payload is in a bounce buffer unless that is nil.
func putSync(p *hot.Post, peer *hot.Peer, slot *hot.Slot, id uint64, b *hot.Bounce, index uint32) {
	flags := uint8(0)
	if b != nil {
		flags = hot.SlotBounce
	}
	outbound.Put(slot, hot.AMSync, flags, SyncBytes, int(p.Len), p.Header)
	head := (*SyncHead)(unsafe.Pointer(&slot.Body))
	head.Request, head.Data = id, p.Data
	head.Flags = uint64(RTSFlags(p.Kind&hot.PostTagged != 0, p.Kind&hot.PostData != 0))
	if p.Flags&fi.MatchComplete != 0 {
		head.Flags |= hot.RTSMatch
	}
	at := bodyOf(slot) + unsafe.Sizeof(*head)
	if b == nil {
		move(at, p.Buf, uintptr(p.Len))
		return
	}
	outbound.Mark(b, peer.Owner, peer.Peer)
	*(*hot.BounceRef)(pointer(at)) = hot.BounceRef{Index: index}
}
