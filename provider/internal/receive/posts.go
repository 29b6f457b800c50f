package receive

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// Posts are how any thread posts receives to a [Context]: on a ring, which the holder of the progress lease takes them
// off. Immutable from Open on.
type Posts struct {
	hot   *hot.Rx
	ring  *mpsc.Ring
	rules Rules
	host  Posting
	// minMulti and urgent are Receiver.MinMulti and Receiver.Urgent.
	minMulti *atomic.Uint64
	urgent   *atomic.Int32
	// stats is the block of the first endpoint, nil without one. Written by the lease holder, read by any thread.
	stats *atomic.Pointer[stats.Endpoint]
}

// Open prepares the posts to a context that is open.
func (p *Posts) Open(c *Context, rules Rules, host Posting) {
	p.hot, p.ring, p.rules, p.host, p.stats = c.hot, c.posts, rules, host, c.stats
	p.minMulti, p.urgent = &c.MinMulti, &c.Urgent
}

// Check validates a receive. Errors: fi.EBADFLAGS, fi.EINVAL, fi.ETOOSMALL.
func (p *Posts) Check(m *Recv) error { return m.check(&p.rules, p.minMulti.Load()) }

// Post validates a receive and pushes it on the post ring. Errors as of Check, and
// fi.EAGAIN when the ring is full and another thread is making progress; fi.ENOMEM.
func (p *Posts) Post(m *Recv) error {
	if err := p.Check(m); err != nil {
		return err
	}
	entry, iov := m.entry(), m.buffers()
	switch len(iov) {
	case 0:
	case 1:
		entry.Buf, entry.Len = uint64(iov[0].Base), iov[0].Len
	default:
		return p.postVector(&entry, iov)
	}
	err := p.push(&entry)
	if err == nil && entry.Flags&dataplane.UrgentRecv != 0 {
		p.actUrgent()
	}
	if st := p.stats.Load(); err != nil && st != nil {
		st.Shared(stats.SharedNoPost, 1)
	}
	return err
}

// Cancel asks for the end of the receive that was posted with context. Errors: fi.EAGAIN.
func (p *Posts) Cancel(context uint64) error {
	err := p.push(&hot.RecvEntry{Flags: hot.RecvCancel, Context: context})
	if err == nil {
		p.actUrgent()
	}
	return err
}

// Notify is called when C has posted a receive. A search for which a thread sleeps is made at once.
func (p *Posts) Notify() {
	if p.urgent.Load() != 0 {
		p.actUrgent()
	} else {
		p.wake()
	}
}

// wake wakes the progress thread, or those that sleep on the endpoints' queues, after a receive was posted that may be
// for an unexpected message.
func (p *Posts) wake() {
	p.host.Ring()
	if p.hot.Woken() {
		p.host.Wake()
	}
}

// Room is how many receives the post ring has room for, a lower bound.
func (p *Posts) Room() uint64 {
	return p.ring.Slots() - min(p.ring.Tail()-atomic.LoadUint64(&p.hot.PostsHead), p.ring.Slots())
}

// actUrgent acts on an entry with one of the flags dataplane.UrgentRecv that was pushed. If another thread makes
// progress, that one or the next poll does, be that of a thread that sleeps.
func (p *Posts) actUrgent() {
	if c := p.host.Try(); c != nil {
		c.Drain(0)
		p.host.Give()
	} else {
		p.host.Ring() // the holder may be done already
		p.host.Wake()
	}
}

// push puts an entry on the post ring, making room if this thread can.
func (p *Posts) push(e *hot.RecvEntry) error {
	for range 2 {
		switch dataplane.PushEntry(p.hot, e) {
		case hot.PostBell:
			p.wake()
			return nil
		case hot.PostDone:
			return nil
		}
		c := p.host.Try()
		if c == nil {
			return fi.EAGAIN
		}
		c.Drain(0)
		p.host.Give()
	}
	return fi.EAGAIN
}

// postVector posts a receive of several elements. Their list outlives the
// call, so it needs memory that the lease protects; the receives that are on
// the ring already come first.
func (p *Posts) postVector(entry *hot.RecvEntry, iov []fi.IOVec) error {
	c := p.host.Try()
	if c == nil {
		return fi.EAGAIN
	}
	defer p.host.Give()
	addr, err := keepVector(c.Pool, iov)
	if err != nil {
		return fi.ENOMEM
	}
	entry.Buf, entry.Len = addr, uint64(len(iov))
	entry.Flags |= hot.RecvIOV
	c.Drain(0)
	c.post(entry)
	return nil
}
