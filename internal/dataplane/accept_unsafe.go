package dataplane

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/match"
)

// Matching and delivering a message whose payload has arrived: Accept.

// Arrival is a message whose payload has arrived. The data plane fills a variable of it by field: the compiler builds a
// literal elsewhere and copies it in pieces larger than the stores to it, for which the loads have to wait.
type Arrival struct {
	ID      uint32 // the sender's identity
	Number  uint32 // which of the sender's interfaces
	Source  uint32 // number of the sender at the endpoint (hw.Source)
	Flags   uint32 // hot.Message*
	Addr    uint64 // of the sender, plus one; 0: it is not in the address vector
	Tag     uint64
	Data    uint64
	Length  uint64  // bytes of payload
	Payload uintptr // its address
	Request uint64  // with MessageSync: the sender's
}

// Bits of the flags of a message beside hot.Message*.
const (
	MessageRTS   = 1 << 2 // the payload is with the sender: match.Message.Payload is the address of a hot.RTSHead
	MessageSync  = 1 << 3 // the sender waits for an acknowledgement
	MessageMatch = 1 << 4 // until a receive has matched
)

// Verdict is what became of a message.
type Verdict int

const (
	Delivered  Verdict = iota // its receive is complete
	Unexpected                // it is kept as unexpected
	// Settle: it matches the receive in Outlet.Recv, which is out of matching unless it is a multi-receive buffer;
	// the runtime copies and completes.
	Settle
	// Complete: it is delivered; the runtime writes the completion in Outlet.Entry to the queue.
	Complete
	// Refused: nothing has happened; the runtime does it all.
	Refused
)

// Outlet is where a message's completion goes, and what Accept says of it.
type Outlet struct {
	Reader *hot.Reader // nil: to the queue
	Recv   uint64      // with Settle: address of the match.Recv. A pointer would need a write barrier.
	Entry  hot.CQE     // with Complete
	Todo   uint32      // hot.Todo*, added to
}

// Accept matches a message of an endpoint with the receive that was posted first, delivers it, or holds it. The caller
// holds the progress lease.
func (r *Receiver) Accept(ep *hot.EP, a *Arrival, out *Outlet) Verdict {
	rx := context(ep)
	eng := r.Engine(a.Flags&hot.MessageTagged != 0)
	rv := eng.Arrive(a.ID, a.Tag)
	if rv == nil {
		post := headPost(rx)
		if post != nil && !r.plainMatch(post, a) {
			var ok bool
			if post, rv, ok = r.behind(rx, eng, post, a); !ok {
				return Refused
			}
		}
		if post != nil {
			context, buf, flags := post.Context, post.Buf, post.Flags
			dropPost(rx, post)
			move(uintptr(buf), a.Payload, uintptr(a.Length))
			return finish(ep, a, context, flags, buf, out)
		}
	}
	if rv == nil {
		return r.hold(ep, rx, eng, a)
	}
	return r.deliverMatched(ep, eng, rv, a, out)
}

// deliverMatched gives a message to the receive that it has matched.
func (r *Receiver) deliverMatched(ep *hot.EP, eng *match.Engine, rv *match.Recv, a *Arrival, out *Outlet) Verdict {
	buf, ok := space(rv, a.Length)
	if !ok {
		out.Recv = uint64(uintptr(unsafe.Pointer(rv)))
		return Settle
	}
	context, flags := rv.Context, rv.Flags&^fi.MultiRecv
	if rv.Kept() {
		rv.User[MultiUsed] += a.Length
		flags |= r.Retire(eng, rv)
	} else {
		eng.Put(rv)
	}
	move(uintptr(buf), a.Payload, uintptr(a.Length))
	return finish(ep, a, context, flags, buf, out)
}

// space is where the next message of a receive goes. ok is false where the runtime is needed: n bytes are too many, or
// it has to scatter them, to copy to a device, or to report deferred work.
func space(rv *match.Recv, n uint64) (buf uint64, ok bool) {
	buf, room := rv.Buf, rv.Len
	if rv.Kept() {
		buf, room = buf+rv.User[MultiUsed], room-rv.User[MultiUsed]
	}
	return buf, rv.Flags&(hot.RecvIOV|hot.RecvDevice|hot.RecvWork) == 0 && n <= room
}

// MultiRoom reports whether a multi-receive buffer takes another message.
func (r *Receiver) MultiRoom(rv *match.Recv) bool {
	return rv.Len-rv.User[MultiUsed] >= max(1, r.MinMulti.Load()) // a full one is released whatever the option says
}

// Retire takes a used-up multi-receive buffer out of matching. It returns fi.MultiRecv if the completion at hand is the
// buffer's last, and ends the receive then.
func (r *Receiver) Retire(eng *match.Engine, rv *match.Recv) uint64 {
	if rv.Posted() && r.MultiRoom(rv) {
		return 0
	}
	eng.Remove(rv)
	if rv.User[MultiPending] != 0 {
		return 0
	}
	eng.Put(rv)
	return fi.MultiRecv
}

// finish completes a receive whose message is in its buffer.
func finish(ep *hot.EP, a *Arrival, context, flags, buf uint64, out *Outlet) Verdict {
	verdict := Delivered
	if ep.RxCQ != 0 && (ep.Flags&hot.EPRxSelective == 0 || flags&(fi.Completion|fi.MultiRecv) != 0) {
		kind := fi.Recv | fi.Msg
		if a.Flags&hot.MessageTagged != 0 {
			kind = fi.Recv | fi.Tagged
		}
		if a.Flags&hot.MessageData != 0 {
			kind |= fi.RemoteCQData
		}
		kind |= flags & fi.MultiRecv
		q := (*hot.CQ)(pointer(ep.RxCQ))
		if to := out.Reader; to != nil && to.Left != 0 {
			putWords(to, q.Format, context, kind, a.Length, buf, a.Data, a.Tag)
			putSource(to, a.Addr-1)
		} else {
			e := &out.Entry
			e.Context, e.Flags, e.Len, e.Buf = context, kind, a.Length, buf
			e.Data, e.Tag, e.Src = a.Data, a.Tag, a.Addr-1
			if completeTo(q, e) {
				out.Todo |= hot.TodoWakeCQ
			} else {
				verdict = Complete
			}
		}
	}
	if ep.RxCntr != 0 {
		out.Todo |= count((*hot.Cntr)(pointer(ep.RxCntr)), a.Length)
	}
	return verdict
}

// InWord is how many bytes of an unexpected message's payload its node has room for: such a message is matched without
// a read at memory of its own.
const InWord = 8

// Layout of match.Message.Flags: hot.Message* and bits of package provider in the lowest byte, then the source, the
// number of the sender's interface, and the number of the endpoint.
const (
	UnexpectedSourceShift   = 8  // 24 bits
	UnexpectedNumberShift   = 32 // 8 bits
	UnexpectedEndpointShift = 40 // 24 bits
)

// hold keeps a message that matches no receive as unexpected.
func (r *Receiver) hold(ep *hot.EP, rx *hot.Rx, eng *match.Engine, a *Arrival) Verdict {
	n := int(a.Length)
	memory := KeptMemory(a.Flags, n)
	if r.UnexpectedBytes+n > r.UnexpectedMax || r.Memory+memory > r.MemoryMax || r.Ended {
		return Refused
	}
	addr := uint64(0)
	if n > InWord {
		if addr = r.Pool.TryGet(n); addr == 0 {
			return Refused
		}
	}
	m := eng.TryHold(a.ID, a.Tag)
	if m == nil {
		if addr != 0 {
			r.Pool.TryPut(addr, n)
		}
		return Refused
	}
	a.describe(ep, m, addr)
	to := uintptr(addr)
	if addr == 0 {
		to = uintptr(unsafe.Pointer(&m.Payload))
	}
	move(to, a.Payload, uintptr(n))
	r.UnexpectedBytes += n
	r.Memory += memory
	stat(ep, stats.RxUnexpectedBytes, a.Length)
	countUnexpected(r, ep, rx)
	return Unexpected
}

// KeptMemory is how much memory an unexpected message with flags (MessageRTS) takes, of which n bytes of payload are
// here.
func KeptMemory(flags uint32, n int) int {
	switch {
	case flags&MessageRTS != 0:
		return match.MessageBytes + mem.PoolBytes(UnexpectedRTSBytes)
	case n > InWord:
		return match.MessageBytes + mem.PoolBytes(n)
	}
	return match.MessageBytes
}

// describe notes in m what is known of a message, with its payload, or the head of its RTS, at an address.
func (a *Arrival) describe(ep *hot.EP, m *match.Message, payload uint64) {
	m.Len, m.Data, m.Payload, m.Request = a.Length, a.Data, payload, a.Request
	m.Flags = uint64(a.Flags) | uint64(a.Source)<<UnexpectedSourceShift | uint64(a.Number)<<UnexpectedNumberShift |
		uint64(ep.Number)<<UnexpectedEndpointShift
}

// countUnexpected counts an unexpected message, and has posted receives taken in before arrivals from now on.
func countUnexpected(r *Receiver, ep *hot.EP, rx *hot.Rx) {
	stat(ep, stats.RxUnexpected, 1)
	if rx.WantPosts == 0 {
		r.setWant(rx, 1)
	}
}

// stat adds to a word of the endpoint's line of counters that belongs to the lease holder.
func stat(ep *hot.EP, word int, n uint64) {
	w := (*uint64)(pointer(ep.StatsRx + uintptr(word)*8))
	order.Store64(w, *w+n)
}
