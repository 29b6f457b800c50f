package dataplane

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/stats"
)

// Matching and delivering a message whose payload has arrived: Accept.

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
	// Settle: it matches the receive in Delivery.Recv, which is out of matching unless it is a multi-receive buffer;
	// the runtime copies and completes.
	Settle
	// Complete: it is delivered; the runtime writes the completion in Delivery.Entry to the queue.
	Complete
	// Refused: nothing has happened; the runtime does it all.
	Refused
)

// Accept matches the message at hand of a delivery at an endpoint with the receive that was posted first, delivers it,
// or holds it. It reads what stands from Payload to Number, and Reader, and adds to Todo. The caller holds the progress
// lease.
func (r *Receiver) Accept(ep *hot.EP, d *hot.Delivery) Verdict {
	rx := context(ep)
	eng := r.Engine(d.Flags&hot.MessageTagged != 0)
	if rv := eng.Arrive(d.ID, d.Tag); rv != nil {
		return r.deliverMatched(ep, eng, rv, d)
	}
	post := headPost(rx)
	if post == nil {
		return r.hold(ep, rx, eng, d)
	}
	if !r.plainMatch(eng, post, d) {
		plain, rv, ok := r.behind(rx, eng, post, d)
		switch {
		case !ok:
			return Refused
		case rv != nil:
			return r.deliverMatched(ep, eng, rv, d)
		case plain == nil:
			return r.hold(ep, rx, eng, d)
		}
		post = plain
	}
	context, buf, flags := post.Context, post.Buf, post.Flags
	dropPost(rx, post)
	takePayload(r, uintptr(buf), uintptr(d.Payload), uintptr(d.Length))
	return complete(ep, d, context, flags, buf)
}

// deliverMatched gives the message at hand to the receive that it has matched.
func (r *Receiver) deliverMatched(ep *hot.EP, eng *match.Engine, rv *match.Recv, d *hot.Delivery) Verdict {
	buf, ok := space(rv, d.Length)
	if !ok {
		d.Recv = uint64(uintptr(unsafe.Pointer(rv)))
		return Settle
	}
	context, flags := rv.Context, rv.Flags&^fi.MultiRecv
	if rv.Kept() {
		rv.User[MultiUsed] += d.Length
		flags |= r.Retire(eng, rv)
	} else {
		eng.Put(rv)
	}
	takePayload(r, uintptr(buf), uintptr(d.Payload), uintptr(d.Length))
	return complete(ep, d, context, flags, buf)
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

// receiveKinds are the flags of a receive's completion by the hot.Message* of the message.
var receiveKinds = [...]uint64{
	0:                                   fi.Recv | fi.Msg,
	hot.MessageTagged:                   fi.Recv | fi.Tagged,
	hot.MessageData:                     fi.Recv | fi.Msg | fi.RemoteCQData,
	hot.MessageTagged | hot.MessageData: fi.Recv | fi.Tagged | fi.RemoteCQData,
}

// complete completes a receive whose message, the one at hand, is in its buffer.
func complete(ep *hot.EP, d *hot.Delivery, context, flags, buf uint64) Verdict {
	verdict := Delivered
	if ep.RxCQ != 0 && (ep.Flags&hot.EPRxSelective == 0 || flags&(fi.Completion|fi.MultiRecv) != 0) {
		kind := receiveKinds[d.Flags&(hot.MessageTagged|hot.MessageData)] | flags&fi.MultiRecv
		q := (*hot.CQ)(pointer(ep.RxCQ))
		if to := reader(d); to != nil && to.Left != 0 {
			putWords(to, q.Format, context, kind, d.Length, buf, d.Data, d.Tag)
			putSource(to, hot.AddrOfSender(d.Addr))
		} else {
			e := &d.Entry
			e.Context, e.Flags, e.Len, e.Buf = context, kind, d.Length, buf
			e.Data, e.Tag, e.Src = d.Data, d.Tag, hot.AddrOfSender(d.Addr)
			if completeTo(q, e) {
				d.Todo |= hot.TodoWakeCQ
			} else {
				verdict = Complete
			}
		}
	}
	if ep.RxCntr != 0 {
		d.Todo |= count((*hot.Cntr)(pointer(ep.RxCntr)), d.Length)
	}
	return verdict
}

// InWord is how many bytes of an unexpected message's payload its node has room for: such a message is matched without
// a read at memory of its own.
const InWord = 8

// Layout of match.Message.Flags: hot.Message* and bits of package receive in the lowest byte, then the source, the
// number of the sender's interface, and the number of the endpoint.
const (
	UnexpectedSourceShift   = 8  // 24 bits
	UnexpectedNumberShift   = 32 // 8 bits
	UnexpectedEndpointShift = 40 // 24 bits
)

// hold keeps the message at hand, which matches no receive, as unexpected.
func (r *Receiver) hold(ep *hot.EP, rx *hot.Rx, eng *match.Engine, d *hot.Delivery) Verdict {
	n := int(d.Length)
	memory := KeptMemory(d.Flags, n)
	if r.UnexpectedBytes+n > r.UnexpectedMax || r.Memory+memory > r.MemoryMax || r.Ended {
		return Refused
	}
	addr := uint64(0)
	if n > InWord {
		if addr = r.Pool.TryGet(n); addr == 0 {
			return Refused
		}
	}
	m := eng.TryHold(d.ID, d.Tag)
	if m == nil {
		if addr != 0 {
			r.Pool.TryPut(addr, n)
		}
		return Refused
	}
	describe(d, ep, m, addr)
	to := uintptr(addr)
	if addr == 0 {
		to = uintptr(unsafe.Pointer(&m.Payload))
	}
	takePayload(r, to, uintptr(d.Payload), uintptr(n))
	r.UnexpectedBytes += n
	r.Memory += memory
	stat(ep, stats.RxUnexpectedBytes, d.Length)
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

// describe notes in m what is known of the message at hand, with its payload, or the head of its RTS, at an address.
func describe(d *hot.Delivery, ep *hot.EP, m *match.Message, payload uint64) {
	m.Len, m.Data, m.Payload, m.Request = d.Length, d.Data, payload, d.Request
	m.Flags = uint64(d.Flags) | uint64(d.Source)<<UnexpectedSourceShift | uint64(d.Number)<<UnexpectedNumberShift |
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
