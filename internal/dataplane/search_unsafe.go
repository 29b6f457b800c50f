package dataplane

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// Searches, as fi_tagged(3) defines them:
//
//	PEEK          report whether a matching message is unexpected
//	PEEK|CLAIM    and reserve it for a receive with this context
//	PEEK|DISCARD  and drop it
//	CLAIM         receive the message that was reserved with this context
//	CLAIM|DISCARD drop it
//
// A search goes over the post ring like a receive (postSearch) and is made by the next poll (search). A peek finds what
// was sent before it: where no unexpected message matches, what has arrived is taken in first (begunSearch), then it is
// made again (searchAgain). Of a context of several endpoints, or where messages come over other transports, that is
// the runtime's.

const _ = -(hot.RecvNoBuffer ^ (fi.Peek | fi.Discard)) // overflows unless they are the same

// postSearch posts a search; the result is as Recv has it.
func postSearch(p *hot.Post, rx *hot.Rx, ep *hot.EP) uintptr {
	how := p.Flags & (fi.Peek | fi.Claim | fi.Discard)
	if rx == nil || ep == nil || ReceiverOf(rx) == nil || p.Kind&hot.PostTagged == 0 ||
		p.Flags&^(searchPost&^hot.RecvTagged) != 0 || how == fi.Peek|fi.Claim|fi.Discard ||
		p.Dest == uint64(fi.AddrUnspec) && rx.Flags&hot.RxExact != 0 {
		return hot.PostGo
	}
	if how&hot.RecvNoBuffer != 0 {
		p.Buf, p.Len = 0, 0
	} else if !single(p) || p.Buf == 0 && p.Len != 0 {
		return hot.PostGo
	}
	entry := hot.RecvEntry{
		Flags: p.Flags | hot.RecvTagged, Buf: uint64(p.Buf), Len: p.Len, Src: p.Dest, Tag: p.Header, Ignore: p.Data,
		Context: p.Context,
	}
	if PushEntry(rx, &entry) == hot.PostGo {
		return hot.PostGo
	}
	// What a peek finds or reserves concerns this process only, which polls for it, or sleeps.
	alone := how == fi.Peek || how == fi.Peek|fi.Claim
	if bell := atomic.LoadUintptr(&rx.Bell); !alone && bell != 0 && asleep(rx, bell) || awaited(ep) {
		return hot.PostBell
	}
	return hot.PostDone
}

// UrgentRecv are the flags of entries that may not stay on the post ring
// until something arrives: they complete without an arrival.
const UrgentRecv = hot.RecvCancel | fi.Peek | fi.Claim

// PushEntry puts an entry of any flags, its Seq aside, on the post ring of rx. It returns hot.PostDone; hot.PostBell,
// if the progress thread of rx may sleep and what was posted is work for it; hot.PostGo if the ring is full: nothing
// has happened then. Any thread may call it. An entry that completes without an arrival is found as work by the next
// poll.
func PushEntry(rx *hot.Rx, entry *hot.RecvEntry) uintptr {
	if entry.Flags&UrgentRecv == 0 {
		return pushEntry(rx, entry)
	}
	r := ReceiverOf(rx)
	r.Urgent.Add(1) // U1: before the entry is there, so that it is never too low
	code := pushEntry(rx, entry)
	if code == hot.PostGo {
		r.Urgent.Add(-1)
		return code
	}
	atomic.StoreUint32(&rx.WantPosts, 1) // U2: pairs with setWant
	return code
}

// pushEntry is PushEntry of one of which nothing but an arrival makes work.
func pushEntry(rx *hot.Rx, entry *hot.RecvEntry) uintptr {
	ring := mpsc.View(&rx.Posts)
	slot, pos, ok := ring.Claim(0, rx.Flags&hot.RxExclusive != 0)
	if !ok {
		return hot.PostGo
	}
	e := (*hot.RecvEntry)(slot)
	e.Flags = entry.Flags
	e.Buf = entry.Buf
	e.Len = entry.Len
	e.Src = entry.Src
	e.Tag = entry.Tag
	e.Ignore = entry.Ignore
	e.Context = entry.Context
	ring.Publish(slot, 0, pos)
	return pushed(rx)
}

// awaited reports whether a thread sleeps on the completions of receives, or an operation waits for their counter. The
// fence pairs with the one in the sleeper between arming and its last poll for work.
func awaited(ep *hot.EP) bool {
	if wakeNeeded((*hot.CQ)(pointer(ep.RxCQ))) {
		return true
	}
	if ep.RxCntr == 0 {
		return false
	}
	c := (*hot.Cntr)(pointer(ep.RxCntr))
	flags := atomic.LoadUint32(&c.Flags)
	if flags&hot.CQWaitable != 0 {
		order.Fence()
	}
	return flags&hot.CntrTriggers != 0 || flags&hot.CQWaitable != 0 && atomic.LoadUint32(&c.Armed) != 0
}

// search makes the search that is the oldest entry of the post ring.
func search(
	r *Receiver, d *hot.Delivery, ep *hot.EP, rx *hot.Rx, eng *match.Engine, post *hot.RecvEntry,
) uintptr {
	if ep.Flags&hot.EPMatches == 0 || post.Flags&^searchPost != 0 {
		return hot.DeliveryGo // a cancel, or one whose buffer is not one piece of host memory
	}
	if post.Flags&fi.Peek == 0 {
		m := eng.FindClaimed(post.Context)
		switch {
		case m == nil:
			return missed(r, d, ep, rx, post)
		case post.Flags&fi.Discard != 0:
			return found(r, d, ep, rx, eng, post, m)
		}
		return giveMessage(r, d, ep, rx, eng, post, m)
	}
	id, ok := r.identity(post.Src, post.Flags)
	if !ok {
		return hot.DeliveryGo
	}
	m, ok := eng.TryPeek(id, post.Tag, post.Ignore)
	switch {
	case !ok:
		return hot.DeliveryGo
	case m != nil:
		return found(r, d, ep, rx, eng, post, m)
	case d.Begun >= begunRings:
		return missed(r, d, ep, rx, post)
	case r.Endpoints != 1 || atomic.LoadUint32(&rx.Attention) != 0:
		return hot.DeliveryGo
	}
	d.Begun = begunSearch
	return next
}

// searchAgain makes the search for which what has arrived was taken in.
func searchAgain(r *Receiver, d *hot.Delivery, ep *hot.EP, rx *hot.Rx) uintptr {
	d.Begun = begunRings
	post := headPost(rx)
	if post == nil || post.Flags&fi.Peek == 0 {
		return next // the runtime has made it
	}
	code := search(r, d, ep, rx, r.Engine(post.Flags&hot.RecvTagged != 0), post)
	r.PublishWant(rx)
	return code
}

// found completes a search with what is known of a message, and reserves or drops that if it is to.
func found(
	r *Receiver, d *hot.Delivery, ep *hot.EP, rx *hot.Rx, eng *match.Engine, post *hot.RecvEntry, m *match.Message,
) uintptr {
	discards := post.Flags&fi.Discard != 0
	src, source, addr := senderOf(ep, m)
	if src == nil || discards && m.Flags&MessageRTS == 0 && m.Len > mem.MaxShared {
		return hot.DeliveryGo
	}
	setUnexpected(d, m, uint32(uint8(m.Flags)), source, addr)
	context, flags := post.Context, post.Flags
	drop(r, ep, rx, post, flags)
	acks := discards && m.Flags&(MessageRTS|MessageSync) != 0
	switch {
	case discards:
		eng.RemoveMessage(m)
		r.forget(eng, m)
	case flags&fi.Claim != 0:
		eng.Claim(m, context)
	}
	verdict := complete(ep, d, context, flags|fi.Completion, 0)
	d.Worked = 1
	return endUnexpected(d, ep, verdict, acks)
}

// missed completes a search that finds nothing, with an error.
func missed(r *Receiver, d *hot.Delivery, ep *hot.EP, rx *hot.Rx, post *hot.RecvEntry) uintptr {
	if ep.RxCQ != 0 {
		var s spot
		q := (*hot.CQ)(pointer(ep.RxCQ))
		if !s.take(q, nil) {
			return hot.DeliveryGo
		}
		briefError((*hot.CQE)(pointer(s.slot)), post.Context, fi.Recv|fi.Tagged, post.Tag, fi.ENOMSG)
		s.publish(q, hot.CQMarkError)
		d.Todo |= hot.TodoWakeCQ
		behindOlder(d)
	}
	drop(r, ep, rx, post, post.Flags)
	stat(ep, stats.RxErrOther, 1)
	if ep.RxCntr != 0 {
		d.Todo |= countError((*hot.Cntr)(pointer(ep.RxCntr)))
	}
	d.Worked = 1
	return next
}

// briefError fills an entry of an error of which it says all.
func briefError(e *hot.CQE, context, flags, tag uint64, err fi.Errno) {
	e.Context, e.Flags, e.Len, e.Buf, e.Data, e.Tag = context, flags|hot.CQEError, 0, 0, 0, tag
	e.Src = cqring.Brief(int32(err), int32(err))
}
