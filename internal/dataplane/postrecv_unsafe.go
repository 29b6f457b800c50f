package dataplane

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/mpsc"
)

// Posting a receive: onto the post ring of its receive context.

// Recv posts a receive of one piece of the process's own memory, or a search, and returns a code of hot.Post: PostDone,
// PostBell or PostGo. at is the address of a hot.Post, rx of the hot.Rx, 0: the endpoint has none (yet), ep of the
// hot.EP, 0: it is posted to a context of several endpoints.
func Recv(at, rx, ep, _ uintptr) uintptr {
	p, context := (*hot.Post)(pointer(at)), (*hot.Rx)(pointer(rx))
	if p.Kind&unlikely != 0 {
		if p.Flags&(fi.Peek|fi.Claim) != 0 {
			return postSearch(p, context, endpoint(ep))
		}
		if !single(p) {
			return hot.PostGo
		}
	}
	flags := p.Flags
	if flags&fi.MultiRecv != 0 && context != nil && takesMany(context, p) {
		flags &^= fi.MultiRecv
	}
	if context == nil || flags&^(fi.Completion|fi.More) != 0 || p.Buf == 0 && p.Len != 0 ||
		p.Dest == uint64(fi.AddrUnspec) && context.Flags&hot.RxExact != 0 {
		return hot.PostGo
	}
	return push(context, p, p.Flags|uint64(p.Kind&hot.PostTagged)<<63) // hot.RecvTagged
}

// takesMany reports whether a buffer may be one that takes several messages: of untagged ones, and long enough.
func takesMany(rx *hot.Rx, p *hot.Post) bool {
	r := ReceiverOf(rx)
	return r != nil && p.Kind&hot.PostTagged == 0 && p.Len >= r.MinMulti.Load()
}

// push puts a receive that has been checked on the post ring of rx: from Dest, with the tag Header and Data for the
// bits to ignore; flags are those of its hot.RecvEntry. The result is as PushEntry has it.
func push(rx *hot.Rx, p *hot.Post, flags uint64) uintptr {
	ring := mpsc.View(&rx.Posts)
	slot, pos, ok := ring.Claim(0, rx.Flags&hot.RxExclusive != 0)
	if !ok {
		return hot.PostGo
	}
	e := (*hot.RecvEntry)(slot)
	e.Flags = flags
	e.Buf = uint64(p.Buf)
	e.Len = p.Len
	e.Src = p.Dest
	e.Tag = p.Header
	e.Ignore = p.Data
	e.Context = p.Context
	ring.Publish(slot, 0, pos)
	return pushed(rx)
}

// pushed is the code for a receive that is on the post ring.
func pushed(rx *hot.Rx) uintptr {
	if bell := atomic.LoadUintptr(&rx.Bell); bell != 0 && asleep(rx, bell) {
		return hot.PostBell
	}
	return hot.PostDone
}

// asleep reports whether the progress thread with the bell at an address sleeps, and a posted receive is work for it.
// The fence pairs with the one between its arming the bell and its last poll.
func asleep(rx *hot.Rx, bell uintptr) bool {
	order.Fence()
	return atomic.LoadUint32(&rx.WantPosts) != 0 && atomic.LoadUint32((*uint32)(pointer(bell))) == hot.BellAsleep
}
