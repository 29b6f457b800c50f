package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/info"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/receive"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// RecvArgs describes one receive.
type RecvArgs struct {
	IOV     []fi.IOVec
	Src     fi.Addr
	Tag     uint64
	Ignore  uint64
	Flags   uint64
	Context uint64
	Tagged  bool
	On      Threshold // with fi.Trigger in Flags

	work uint64 // the number of the deferred work that this is, or 0
}

// buffers are those of a receive, none of a search that ignores them.
func (a *RecvArgs) buffers() []fi.IOVec {
	if a.Flags&hot.RecvNoBuffer != 0 {
		return nil
	}
	return a.IOV
}

// entry is the receive as it stands on the post ring, but for its buffer.
func (a *RecvArgs) entry() hot.RecvEntry {
	e := hot.RecvEntry{Flags: a.Flags, Src: uint64(a.Src), Tag: a.Tag, Ignore: a.Ignore, Context: a.Context}
	if a.Tagged {
		e.Flags |= hot.RecvTagged
	}
	if hmem.AnyOnDevice(a.buffers()) {
		e.Flags |= hot.RecvDevice
	}
	if a.work != 0 {
		e.Flags |= hot.RecvWork
		e.Context = a.work
	}
	return e
}

// recvFlags are the flags that a receive may carry.
const recvFlags = fi.Completion | fi.More | fi.MultiRecv | fi.Peek | fi.Claim | fi.Discard | fi.AuthKey

// postRecv validates a receive and pushes it on the post ring. Errors:
// fi.EAGAIN when the ring is full and another thread is making progress,
// fi.EBADFLAGS, fi.EINVAL.
func (r *rxContext) postRecv(a *RecvArgs) error {
	if r.owner != nil {
		return fi.ENOSYS // they are posted with the owner
	}
	if err := r.checkRecv(a); err != nil {
		return err
	}
	entry, iov := a.entry(), a.buffers()
	switch len(iov) {
	case 0:
	case 1:
		entry.Buf, entry.Len = uint64(iov[0].Base), iov[0].Len
	default:
		return r.postVector(&entry, iov)
	}
	err := r.push(&entry)
	if err == nil && entry.Flags&receive.Urgent != 0 {
		r.actUrgent()
	}
	if st := r.stats.Load(); err != nil && st != nil {
		st.Shared(stats.SharedNoPost, 1)
	}
	return err
}

// actUrgent acts on an entry with one of the flags receive.Urgent that was pushed. If another thread makes progress,
// that one or the next poll does, be that of a thread that sleeps.
func (r *rxContext) actUrgent() {
	if l := r.take(); l != nil {
		l.matching.Drain(0)
		l.publish()
		l.give()
	} else {
		r.ring() // the holder may be done already
		r.sleepers.wake()
	}
}

// push puts an entry on the post ring, making room if this thread can.
func (r *rxContext) push(e *hot.RecvEntry) error {
	p := hot.Post{Buf: uintptr(e.Buf), Len: e.Len, Dest: e.Src, Header: e.Tag, Data: e.Ignore, Context: e.Context}
	for range 2 {
		var code uintptr
		if e.Flags&receive.Urgent != 0 { // not by a function value, through which the post would escape to the heap
			code = dataplane.PushUrgent(r.hot, &p, e.Flags)
		} else {
			code = dataplane.Push(r.hot, &p, e.Flags)
		}
		switch code {
		case hot.PostBell:
			r.ring()
			return nil
		case hot.PostDone:
			return nil
		}
		l := r.take()
		if l == nil {
			return fi.EAGAIN
		}
		l.matching.Drain(0)
		l.publish()
		l.give()
	}
	return fi.EAGAIN
}

// PostRoom is how many receives the post ring has room for, a lower bound.
func (r *rxContext) PostRoom() uint64 {
	return r.posts.Slots() - min(r.posts.Tail()-atomic.LoadUint64(&r.hot.PostsHead), r.posts.Slots())
}

// postVector posts a receive of several elements. Their list outlives the
// call, so it needs memory that the lease protects; the receives that are on
// the ring already come first.
func (r *rxContext) postVector(entry *hot.RecvEntry, iov []fi.IOVec) error {
	l := r.take()
	if l == nil {
		return fi.EAGAIN
	}
	defer l.give()
	addr, err := l.matching.Pool.Get(len(iov) * iovBytes)
	if err != nil {
		return fi.ENOMEM
	}
	copy(vectorAt(addr, len(iov)), iov)
	entry.Buf, entry.Len = addr, uint64(len(iov))
	entry.Flags |= hot.RecvIOV
	l.matching.Drain(0)
	l.matching.Post(entry)
	l.publish()
	return nil
}

func (r *rxContext) checkRecv(a *RecvArgs) error {
	bad := func(err error, format string, args ...any) error {
		log.Warnf(log.EPData, format, args...)
		return err
	}
	if a.Flags&^recvFlags != 0 {
		return bad(fi.EBADFLAGS, "receive: flags %#x are not for a receive", a.Flags&^recvFlags)
	}
	iov := a.buffers()
	if len(iov) > wire.IOVLimit {
		return bad(fi.EINVAL, "receive: %d elements, at most %d", len(iov), wire.IOVLimit)
	}
	for _, v := range iov {
		if v.Base == 0 && v.Len != 0 {
			return bad(fi.EINVAL, "receive: element of %d bytes at address 0", v.Len)
		}
	}
	search := a.Flags & (fi.Peek | fi.Claim | fi.Discard)
	switch {
	case a.Flags&fi.MultiRecv != 0 && a.Tagged && r.attr.Caps&fi.TaggedMultiRecv == 0:
		return bad(fi.EINVAL, "receive: FI_MULTI_RECV for tagged messages is for endpoints with FI_TAGGED_MULTI_RECV")
	case a.Flags&fi.MultiRecv != 0 && (len(iov) != 1 || search != 0):
		return bad(fi.EINVAL, "receive: FI_MULTI_RECV takes one buffer")
	case a.Flags&fi.MultiRecv != 0 && iov[0].Len < r.minMulti.Load():
		return bad(fi.ETOOSMALL, "receive: multi-receive buffer of %d bytes, at least %d",
			iov[0].Len, r.minMulti.Load())
	case a.Flags&fi.AuthKey != 0 && (!r.domain.Keyed() || !info.Directed(r.attr.Caps, a.Tagged)):
		return bad(fi.EINVAL, "receive: FI_AUTH_KEY is for directed receives in domains with FI_AV_AUTH_KEY")
	case a.Src == fi.AddrUnspec && r.attr.Caps&fi.ExactDirectedRecv != 0 && info.Directed(r.attr.Caps, a.Tagged):
		return bad(fi.EINVAL, "receive: from any source, which FI_EXACT_DIRECTED_RECV excludes")
	case search != 0 && !a.Tagged:
		return bad(fi.EBADFLAGS, "receive: FI_PEEK, FI_CLAIM and FI_DISCARD are for tagged receives")
	case search == fi.Discard:
		return bad(fi.EBADFLAGS, "receive: FI_DISCARD needs FI_PEEK or FI_CLAIM")
	case search == fi.Peek|fi.Claim|fi.Discard:
		return bad(fi.EBADFLAGS, "receive: FI_CLAIM and FI_DISCARD exclude each other in a peek")
	}
	return nil
}
