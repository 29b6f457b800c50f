package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// Posted receives: from the post ring, into which Push puts them, into matching.

// Flags of an entry on the post ring.
const (
	// urgentPost are those of entries that complete without an arrival.
	urgentPost = hot.RecvCancel | fi.Peek | fi.Claim
	// simplePost are those of a receive that takes one message.
	simplePost = hot.RecvTagged | hot.RecvIOV | hot.RecvDevice | fi.Completion | fi.More
	// plainPost are those of one whose buffer is one piece of host memory.
	plainPost = hot.RecvTagged | fi.Completion | fi.More
	// searchPost are those of a search that the data plane makes.
	searchPost = plainPost | fi.Peek | fi.Claim | fi.Discard
)

// User words of a multi-receive buffer's match.Recv. Buf, Len, Context and Flags are those of the whole buffer.
const (
	MultiUsed    = iota // bytes given to messages
	MultiPending        // messages whose payload is still being read
)

// headPost returns the oldest entry on the post ring, nil if there is none.
func headPost(rx *hot.Rx) *hot.RecvEntry {
	post, _ := mpsc.View(&rx.Posts).Head(rx.PostsHead)
	return (*hot.RecvEntry)(post)
}

// dropPost takes the oldest entry, which is post, off the post ring.
func dropPost(rx *hot.Rx, post *hot.RecvEntry) {
	pos := rx.PostsHead
	mpsc.View(&rx.Posts).ReleaseSlot(unsafe.Pointer(post), pos)
	order.Store64(&rx.PostsHead, pos+1)
}

// drop takes the oldest entry, which is post, a receive or a search with flags, off the post ring.
func drop(r *Receiver, ep *hot.EP, rx *hot.Rx, post *hot.RecvEntry, flags uint64) {
	dropPost(rx, post)
	if flags&urgentPost != 0 {
		r.Urgent.Add(-1)
		stat(ep, stats.RxSearches, 1)
		stat(ep, stats.RxSearchesDirect, 1)
	}
}

// Enqueue puts a receive from the post ring, which no unexpected message matches, into matching. It reports false, and
// has done nothing, where that needs the runtime.
func (r *Receiver) Enqueue(post *hot.RecvEntry) bool {
	id, ok := r.identity(post.Src, post.Flags)
	return ok && enqueue(r, post, id)
}

// enqueue is Enqueue of a receive whose source is known.
func enqueue(r *Receiver, post *hot.RecvEntry, id uint32) bool {
	if post.Flags&^(simplePost|fi.MultiRecv|hot.RecvWork) != 0 || r.Ended {
		return false
	}
	rv := r.Engine(post.Flags&hot.RecvTagged != 0).TryQueue(id, post.Tag, post.Ignore)
	if rv == nil {
		return false
	}
	rv.Buf, rv.Len, rv.Context, rv.Flags = post.Buf, post.Len, post.Context, post.Flags
	if post.Flags&fi.MultiRecv != 0 {
		rv.User = [len(rv.User)]uint64{}
		rv.SetKeep(true)
	}
	return true
}

// take moves receives from the post ring into matching, of which post is the oldest, until one fits the message at
// hand, of eng, which none in matching fits. With direct one of plainMatch, which post is not, stays on the ring and is
// returned. It stops at a search or cancel, which comes after the message. ok is false where the runtime has to take
// the next entry.
func take(
	r *Receiver, rx *hot.Rx, eng *match.Engine, post *hot.RecvEntry, d *hot.Delivery, direct bool,
) (plain *hot.RecvEntry, queued, ok bool) {
	for post != nil && post.Flags&urgentPost == 0 {
		if queued, ok = advance(r, rx, post, d); queued || !ok {
			return nil, queued, ok
		}
		if post = headPost(rx); direct && post != nil && r.plainMatch(eng, post, d) {
			return post, false, true
		}
	}
	return nil, false, true
}

// behind searches for the receive of the message at hand behind post, the oldest entry of the post ring: one that stays
// there (plain), or rv, which is out of matching. eng is that of the message, ok that of take.
func (r *Receiver) behind(
	rx *hot.Rx, eng *match.Engine, post *hot.RecvEntry, d *hot.Delivery,
) (plain *hot.RecvEntry, rv *match.Recv, ok bool) {
	plain, queued, ok := take(r, rx, eng, post, d, true)
	if queued {
		rv = eng.Arrive(d.ID, d.Tag)
	}
	return plain, rv, ok
}

// advance moves the oldest entry of the post ring, a receive, into matching, and reports whether it fits the message at
// hand. ok is false, and it has done nothing, where that is the runtime's to do, or an unexpected message may be for
// it.
func advance(r *Receiver, rx *hot.Rx, post *hot.RecvEntry, d *hot.Delivery) (fits, ok bool) {
	tagged := post.Flags&hot.RecvTagged != 0
	id, ok := r.identity(post.Src, post.Flags)
	if !ok || r.Engine(tagged).Unexpected() != 0 {
		return false, false
	}
	fits = tagged == (d.Flags&hot.MessageTagged != 0) && match.Fits(id, post.Tag, post.Ignore, d.ID, d.Tag)
	if !enqueue(r, post, id) {
		return false, false
	}
	dropPost(rx, post)
	return fits, true
}

// plainMatch reports whether the message at hand, of eng, fits a receive that is still on the post ring, older than all
// others there, and needs nothing but a copy and a completion. While there are unexpected messages the receive may be
// for one of them.
func (r *Receiver) plainMatch(eng *match.Engine, post *hot.RecvEntry, d *hot.Delivery) bool {
	kind := post.Flags ^ uint64(d.Flags&hot.MessageTagged)<<63 // hot.RecvTagged if only one of them is tagged
	if kind&^(plainPost&^hot.RecvTagged) != 0 || eng.Unexpected() != 0 || d.Length > post.Len ||
		(post.Tag^d.Tag)&^post.Ignore != 0 || r.Ended {
		return false
	}
	id, ok := r.identity(post.Src, post.Flags)
	return ok && (id == match.AnySource || id == d.ID)
}

// PublishWant sets hot.Rx.WantPosts: whether entries on the post ring are work before a message comes.
func (r *Receiver) PublishWant(rx *hot.Rx) {
	want := uint32(0)
	if r.UnexpectedMessages() != 0 || r.Urgent.Load() != 0 || r.Ended {
		want = 1
	}
	r.setWant(rx, want)
}

// setWant sets WantPosts. The caller holds the progress lease; posting threads of searches and cancels store 1, too.
func (r *Receiver) setWant(rx *hot.Rx, want uint32) {
	if rx.WantPosts == want {
		return
	}
	atomic.StoreUint32(&rx.WantPosts, want)
	if want == 0 && r.Urgent.Load() != 0 {
		atomic.StoreUint32(&rx.WantPosts, 1) // an urgent entry came between: it is counted before it is stored
	}
}
