package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/outbound"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// Reads and writes that the posting thread copies from or to the peer's memory: one piece on either side, of at most
// EP.CopyMax bytes. Whatever is refused, or fails, is the runtime's, which does it again from the beginning and says
// what is wrong. The peer's process id is a private copy that has been checked; the key table and the claims are the
// peer's, which can only spoil its own memory by them.

// copyFlags are the flags of such an operation.
const copyFlags = fi.Completion | fi.More | fi.Inject | fi.InjectComplete | fi.TransmitComplete | fi.DeliveryComplete

// postCopy posts a read or a write that is a copy. With hot.PostCopy the shim makes Post.Copy, and calls again.
func postCopy(p *hot.Post) uintptr {
	ep := endpoint(p.EP)
	p.Todo, p.Next = 0, 0
	if p.Step == stepCopied {
		return copied(p, ep)
	}
	var flags uint64 = copyFlags
	data := p.Kind&hot.PostData != 0
	if data {
		flags |= fi.RemoteCQData
	}
	if p.Kind&hot.PostRead == 0 && p.Len < hot.CopyMinWrite || p.Flags&^flags != 0 || !copyable(p, ep) ||
		!plausible(p, ep) {
		return hot.PostGo
	}
	peer, slots := onesided(p, ep)
	if peer == nil {
		return hot.PostGo
	}
	if overtakes(peer, slots) {
		return asMessage(p, ep, peer, slots)
	}
	var e place
	if !e.room(p, ep) || data && !noticeRoom(p, ep, peer, slots) {
		return hot.PostAgain
	}
	if !data && delegates(p, ep, &e) || !claimCopy(p, ep, peer) {
		return hot.PostGo
	}
	p.Step = stepCopied
	return hot.PostCopy
}

// noticeRoom reports whether a peer's ring has room for the notice of a write with data. Another thread may take it:
// then the runtime makes the copy again.
func noticeRoom(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr) bool {
	view := ringOf(peer, slots)
	return roomIn(p, ep, peer, mpsc.View(&view))
}

// copyable reports whether the buffer of an operation may be one that is copied to or from.
func copyable(p *hot.Post, ep *hot.EP) bool {
	return p.Len != 0 && p.Buf != 0 && p.Buf>>63 == 0 && p.Len <= ep.CopyMax
}

// claimCopy claims the region of a copy that would overtake nothing, unless it cannot be made, or not by this thread.
func claimCopy(p *hot.Post, ep *hot.EP, peer *hot.Peer) bool {
	if atomic.LoadUint32(&peer.PID) == 0 || !counts(p, ep) {
		return false
	}
	rights := uint32(hot.KeyWrite)
	if p.Kind&hot.PostRead != 0 {
		rights = hot.KeyRead
	}
	return claim(p, ep, peer, rights)
}

// overtakes reports whether a copy now would be before a message that was posted earlier.
func overtakes(peer *hot.Peer, slots uintptr) bool {
	view := ringOf(peer, slots)
	return outbound.Overtakes(peer, mpsc.View(&view))
}

// claim claims the region of a copy and finds the address in the peer's process.
func claim(p *hot.Post, ep *hot.EP, peer *hot.Peer, rights uint32) bool {
	claimant := outbound.Claimant{PID: ep.PID, Start: ep.StartTime, First: p.Thread}
	c, extent, why := keysOf(peer).ClaimName(&claimant, p.Key, rights)
	if why != outbound.None {
		return false
	}
	if !extent.Has(p.Header, p.Len) {
		outbound.Release(c)
		return false
	}
	p.Claim = uintptr(unsafe.Pointer(c))
	setCopy(&p.Copy, peer, p.Kind)
	onePiece(&p.Copy, uint64(p.Buf), p.Header+extent.Shift, p.Len)
	return true
}

// setCopy sets between which processes a copy is, and in which direction, as the kind of its post says.
func setCopy(c *hot.Copy, peer *hot.Peer, kind uint32) {
	c.PID, c.Write = atomic.LoadUint32(&peer.PID), 1-kind&hot.PostRead/hot.PostRead
}

// onePiece makes a copy one of a single piece of n bytes.
func onePiece(c *hot.Copy, buf, at, n uint64) {
	c.Buf, c.Size, c.At, c.SizeAt = buf, n, at, n
	c.Here, c.There = uintptr(unsafe.Pointer(&c.Buf)), uintptr(unsafe.Pointer(&c.At))
	c.Pieces, c.Len = 1, n
}

// delegates reports whether to ask the runtime first, which may delegate the copy to its target
// (provider/internal/rma/delegate.go): if the application posts ahead of what it reads, and the runtime does not rest
// from being asked.
func delegates(p *hot.Post, ep *hot.EP, e *place) bool {
	if ep.DelegateMin == 0 || p.Len < uint64(ep.DelegateMin) || e.at == 0 ||
		unreadOf(e.queue(), p.Thread&ep.StripeMask) < hot.DelegateAhead {
		return false
	}
	rest := atomic.LoadUint32(&ep.DelegateRest)
	if rest != 0 {
		order.Store32(&ep.DelegateRest, rest-1)
	}
	return rest == 0
}

// unreadOf is about how many completions are unread: in the ring of a stripe, and in the one for all.
func unreadOf(q *hot.CQ, stripe uint32) uint64 {
	n := cqring.Of(q, 0).Unread()
	if ring := stripeRing(q, stripe); ring != 0 {
		n += cqring.Of(q, ring).Unread()
	}
	return n
}

// counts reports whether the bytes of a copy may be counted here; if not, the runtime is to do so now, with this
// operation (provider/internal/pages).
func counts(p *hot.Post, ep *hot.EP) bool {
	return p.Len < hot.AccessMin || atomic.LoadUint64(&ep.Copied) < ep.CopiedMax
}

// copied goes on after the copy.
func copied(p *hot.Post, ep *hot.EP) uintptr {
	if !endCopy(p, ep) || p.Kind&hot.PostData != 0 && !notify(p, ep) {
		return hot.PostGo
	}
	counter, flags := countCopy(p, ep)
	var e place
	e.find(p, ep)
	e.complete(p, counter, flags, p.Len)
	return hot.PostDone
}

// postFailed is copyFailed of a post.
func postFailed(p *hot.Post, ep *hot.EP) bool {
	_, peer := peerOf(ep, p.Dest)
	return copyFailed(&p.Copy, peer)
}

// copyFailed reports whether a copy between this process and a peer's, of which peer is the line, nil: it has none, has
// failed. A kernel that does not let this process make it is not asked again.
func copyFailed(c *hot.Copy, peer *hot.Peer) bool {
	switch fi.Errno(c.Error) {
	case 0:
		return false
	case fi.EPERM, fi.EACCES, fi.ENOSYS:
		if peer != nil {
			order.Store32(&peer.PID, 0)
		}
	}
	return true
}

// endCopy gives the claim of a copy back, and reports whether the copy was made.
func endCopy(p *hot.Post, ep *hot.EP) bool {
	outbound.Release((*hot.Claim)(pointer(p.Claim)))
	if postFailed(p, ep) {
		return false
	}
	if p.Len >= hot.AccessMin {
		order.Store64(&ep.Copied, atomic.LoadUint64(&ep.Copied)+p.Len)
	}
	return true
}

// countCopy counts a copy, and returns the counter for it and the flags of its completion.
func countCopy(p *hot.Post, ep *hot.EP) (counter uintptr, flags uint64) {
	what, bytes := uintptr(stats.ThreadWrite), uintptr(stats.ThreadWriteBytes)
	if p.Kind&hot.PostRead != 0 {
		what, bytes = stats.ThreadRead, stats.ThreadReadBytes
	}
	countPost(p, ep, what, 1)
	countPost(p, ep, bytes, p.Len)
	return accessKind(p, ep)
}

// accessKind returns the counter for a read or a write and the flags of its completion.
func accessKind(p *hot.Post, ep *hot.EP) (counter uintptr, flags uint64) {
	if p.Kind&hot.PostRead != 0 {
		return ep.ReadCntr, fi.RMA | fi.Read
	}
	return ep.WriteCntr, fi.RMA | fi.Write
}
