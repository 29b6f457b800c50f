package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
)

// Posts of lists (weft/token.h). One of a single element is a read or a write, or a notification behind one. Of others
// the posting thread copies all elements, up to EP.CopyMax bytes, some at a time: their regions are claimed, the shim
// makes the system call, the claims are given back. As with single copies, whatever is refused, or fails, is the
// runtime's, which does it again from the beginning and says what is wrong.

// listKinds are the bits of Post.Op of a list that the data plane takes.
const listKinds = hot.ListRead | hot.ListBits | hot.ListNoteOnError

// listFlags are the flags of one.
const listFlags = copyFlags &^ fi.Inject

// PostList posts a list. at is the address of a hot.Post, the result one of its codes. With hot.PostCopy the shim makes
// Post.Copy, and calls again.
func PostList(at, _, _, _ uintptr) uintptr { return endPost(at, postList(beginPost(at))) }

func postList(p *hot.Post) uintptr {
	l := (*List)(pointer(p.Shape))
	if !l.Single || p.Picks != 0 {
		return postElements(p, l)
	}
	if p.Step == stepBegin {
		if !allowed(p, l) {
			p.Todo, p.Next = 0, 0
			return hot.PostGo
		}
		r := unsafe.SliceData(l.Runs) // there is one
		p.Dest, p.Buf, p.Len, p.Header, p.Key = l.Dest, uintptr(r.Local), r.Len, r.Remote, r.Key
		p.Kind |= hot.PostListed
	}
	if p.Note == 0 {
		return rma(p)
	}
	p.NoteTag = l.Tag.Load()
	return postNote(p)
}

// allowed finds whether the data plane takes the post, by what it asks for, and makes it a read if it is one.
func allowed(p *hot.Post, l *List) bool {
	is := l.Write
	if p.Op&hot.ListRead != 0 {
		p.Kind |= hot.PostRead
		is = l.Read
	}
	return is && p.Op&^listKinds == 0 && p.Flags&^listFlags == 0
}

// postElements posts a list of several elements, or some of them.
func postElements(p *hot.Post, l *List) uintptr {
	ep := endpoint(p.EP)
	p.Todo, p.Next = 0, 0
	if p.Step == stepBegin {
		if l.Single || !l.Direct || l.Batches == 0 || !allowed(p, l) {
			return hot.PostGo
		}
		p.Dest, p.NoteTag = l.Dest, l.Tag.Load()
		if code := beginCopies(p, ep, l); code != hot.PostDone {
			return code
		}
	}
	return goOnList(p, ep, l)
}

// beginCopies finds whether the elements may be copied, and takes a batch.
func beginCopies(p *hot.Post, ep *hot.EP, l *List) uintptr {
	if p.Count > MaxElements && p.Picks != 0 {
		return hot.PostGo
	}
	var all picks
	all.begin(p, l)
	elements, bytes, ok := all.sum(l, MaxElements)
	p.Len = bytes
	if !ok || bytes == 0 || bytes > ep.CopyMax || !listCounts(ep, elements, bytes) {
		return hot.PostGo
	}
	peer, slots := onesided(p, ep)
	if peer == nil || atomic.LoadUint32(&peer.PID) == 0 || overtakes(peer, slots) {
		return hot.PostGo
	}
	var e place
	if !e.room(p, ep) {
		return hot.PostAgain
	}
	if p.Note != 0 {
		if code := noteRoomFor(p, ep, peer, slots); code != hot.PostDone {
			return code
		}
	}
	b := (*Batches)(pointer(l.Batches)).take(p.Thread)
	if b == nil {
		return hot.PostGo
	}
	b.first, b.pieces.N, b.elements = 0, 0, elements
	b.picks.begin(p, l)
	p.Batch = uintptr(unsafe.Pointer(b))
	return hot.PostDone
}

// MaxElements is how many elements a list, and a post of one, has at most.
const MaxElements = 1 << 20

// listCounts is counts for the bytes of a list.
func listCounts(ep *hot.EP, elements, bytes uint64) bool {
	return bytes < elements*hot.AccessPieceMin || atomic.LoadUint64(&ep.Copied) < ep.CopiedMax
}

// noteRoomFor finds whether the notification behind the copies of a list could be sent now.
func noteRoomFor(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr) uintptr {
	if p.Flags&^noteFlags != 0 || p.NoteLen > hot.NoticeLongest {
		return hot.PostGo
	}
	out := streamTo(ep, peer)
	if out == nil {
		return hot.PostGo
	}
	p.Stream = uintptr(unsafe.Pointer(out))
	return sendNote(p, ep, peer, slots, out, false)
}

// goOnList takes in that a batch is copied, if one is, and has the shim copy the next.
func goOnList(p *hot.Post, ep *hot.EP, l *List) uintptr {
	b := (*pieceBatch)(pointer(p.Batch))
	if p.Step == stepCopied {
		b.regions.Release()
		b.first = b.end
		if postFailed(p, ep) {
			b.give()
			return hot.PostGo
		}
	}
	peer, slots := onesided(p, ep)
	more, ok := false, false
	if peer != nil {
		more, ok = b.fill(p, ep, peer, l)
	}
	if ok && more {
		p.Step = stepCopied
		return hot.PostCopy
	}
	elements := b.elements
	b.give()
	if !ok {
		return hot.PostGo
	}
	return endList(p, ep, peer, slots, elements)
}

// endList completes a post when all its elements are copied.
func endList(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr, elements uint64) uintptr {
	if p.Len >= elements*hot.AccessPieceMin {
		order.Store64(&ep.Copied, atomic.LoadUint64(&ep.Copied)+p.Len)
	}
	countPost(p, ep, stats.ThreadListIPC, elements)
	countPost(p, ep, stats.ThreadListIPCBytes, p.Len)
	countPost(p, ep, stats.ThreadListDirect, 1)
	if link := linkAt(ep, atomic.LoadUint32(&peer.Link)-1); link != nil {
		link.Listed.Add(elements)
		link.ListedBytes.Add(p.Len)
	}
	if p.Note != 0 {
		if sendNote(p, ep, peer, slots, (*hot.NoteOut)(pointer(p.Stream)), true) != hot.PostDone {
			return hot.PostNote
		}
		wakePeer(p, peer)
	}
	counter, flags := accessKind(p, ep)
	var e place
	e.find(p, ep)
	e.complete(p, counter, flags, p.Len)
	return hot.PostDone
}
