package receive

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// DrainWanted takes what is posted off the ring if it is wanted before an arrival.
func (c *Context) DrainWanted() {
	if atomic.LoadUint32(&c.hot.WantPosts) != 0 {
		c.Drain(0)
	}
}

// Drain takes what is posted off the ring, and does it, up to what has one of
// some flags. Handlers leave searches (dataplane.UrgentRecv).
func (c *Context) Drain(but uint64) {
	for c.takePost(but) {
	}
}

// takePost takes the oldest of what is posted off the ring unless it has one of some
// flags, and reports whether it has.
func (c *Context) takePost(but uint64) bool {
	pos := c.hot.PostsHead
	if !c.posts.Ready(pos) {
		return false
	}
	slot := (*hot.RecvEntry)(c.posts.Slot(pos))
	if slot.Flags&but != 0 {
		return false
	}
	// straight from its slot, unless an unexpected message may be for it
	if c.Engine(slot.Flags&hot.RecvTagged != 0).Unexpected() == 0 && c.Enqueue(slot) {
		c.posts.Release(pos)
		order.Store64(&c.hot.PostsHead, pos+1)
		return true
	}
	if slot.Flags&fi.Peek != 0 {
		takeInFor(c, slot)
	}
	entry := *slot
	c.posts.Release(pos)
	order.Store64(&c.hot.PostsHead, pos+1)
	if entry.Flags&dataplane.UrgentRecv != 0 {
		c.Urgent.Add(-1)
	}
	c.post(&entry)
	return true
}

// post acts on a receive that came off the ring.
func (c *Context) post(entry *hot.RecvEntry) {
	tagged := entry.Flags&hot.RecvTagged != 0
	eng := c.Engine(tagged)
	switch {
	case entry.Flags&hot.RecvCancel != 0:
		c.cancel(entry.Context)
		return
	case entry.Flags&(fi.Peek|fi.Claim) != 0:
		c.search(eng, entry)
		return
	case entry.Flags&fi.MultiRecv != 0:
		c.postMulti(eng, entry)
		if c.Ended {
			c.CancelAll()
		}
		return
	}
	rv, m := eng.Post(c.sources.SourceOf(fi.Addr(entry.Src), entry.Flags), entry.Tag, entry.Ignore)
	switch {
	case m != nil:
		c.deliverUnexpected(eng, targetOf(entry), m)
	case rv != nil:
		rv.Buf, rv.Len, rv.Context, rv.Flags = entry.Buf, entry.Len, entry.Context, entry.Flags
	default:
		c.end(targetOf(entry), entry.Tag, fi.ENOMEM)
	}
	if c.Ended {
		c.CancelAll()
	}
}
