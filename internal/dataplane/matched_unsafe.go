package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/direct"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/matched"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/race"
	"github.com/weft-fabric/weft/mpsc"
)

// Endpoints whose device matches their messages (hot.MatchTransport). Package matched keeps their operations; the
// backend's functions give them to the device, and the shim rings its doorbell.

// matchOf is the match transport of an endpoint, nil: there is none.
func matchOf(ep *hot.EP) *hot.MatchTransport {
	return (*hot.MatchTransport)(pointer(atomic.LoadUintptr(&ep.Match)))
}

// ownerOf is the endpoint behind a match transport.
func ownerOf(t *hot.MatchTransport) *matched.Endpoint { return (*matched.Endpoint)(pointer(t.Owner)) }

// gateOf is the gate of an endpoint, nil: it has none, and no match transport.
func gateOf(ep *hot.EP) *hot.Gate {
	t := matchOf(ep)
	if t == nil {
		return nil
	}
	return (*hot.Gate)(pointer(t.Gate))
}

// enterGate enters the gate of an endpoint. The transport that says where it is may be unmapped as soon as closing
// finds neither an epoch reader nor a thread inside, so the thread is the one until it is the other, or neither. A
// thread without a line stays outside.
func enterGate(p *hot.Poll, ep *hot.EP) bool {
	t := (*hot.Thread)(pointer(p.Thread))
	if !resume(t) {
		return false
	}
	if gateOf(ep).Enter() {
		p.Gated = 1
	}
	pause(t)
	return p.Gated != 0
}

// LeaveGate leaves the gate that a poll is inside, if it is.
func LeaveGate(p *hot.Poll) {
	if p.Gated != 0 {
		gateOf(endpointAt(p.At)).Leave()
		p.Gated = 0
	}
}

// calmShared reports whether there is nothing at the match transport of an endpoint at which several threads make
// progress. False also while another thread has the lease.
func calmShared(ep *hot.EP, rx *hot.Rx) bool {
	if atomic.LoadUint32(&rx.Lease) != 0 || !atomic.CompareAndSwapUint32(&rx.Lease, 0, 1) {
		return false
	}
	race.Acquire(&rx.Lease)
	calm := false
	if context(ep) == rx {
		w := watchOf(ep)
		calm = w != nil && w.Calm()
	}
	race.Release(&rx.Lease)
	order.Store32(&rx.Lease, 0)
	return calm
}

// watchOf is the hot.Watch of an endpoint's match transport, nil: it has none. The transport's memory is there as long
// as the caller has the lease, and the endpoint's context is the one of that lease, or, of an endpoint with a gate, as
// long as the caller is an epoch reader.
func watchOf(ep *hot.EP) *hot.Watch {
	t := matchOf(ep)
	if t == nil {
		return nil
	}
	return (*hot.Watch)(pointer(t.Watch))
}

// sendMatched posts a message at an endpoint with a match transport.
func sendMatched(p *hot.Post, t *hot.MatchTransport) uintptr {
	return postMatched(p, t, ownerOf(t).DirectSend(p))
}

// accessMatched posts a read or write at one, or with atomic an atomic operation.
func accessMatched(p *hot.Post, t *hot.MatchTransport, atomic bool) uintptr {
	p.Todo, p.Next = 0, 0
	if atomic {
		return postMatched(p, t, ownerOf(t).DirectAtomic(p))
	}
	return postMatched(p, t, ownerOf(t).DirectTransfer(p))
}

// Receive posts a receive at an endpoint with a match transport. at is the address of a hot.Post.
func Receive(at, _, _, _ uintptr) uintptr {
	p := (*hot.Post)(pointer(at))
	p.Todo, p.Next = 0, 0
	t := matchOf(endpoint(p.EP))
	if t == nil || p.Kind&unlikely != 0 && !single(p) {
		return hot.PostGo
	}
	p.Thread = (*hot.Thread)(pointer(p.Self)).Number - 1
	return postMatched(p, t, ownerOf(t).DirectReceive(p))
}

// postMatched has the device take an operation that has its place, with hot.PostMatch, or takes it back. It returns
// what the post ends with, PostDone to PostReturn, or PostRing in front of that.
func postMatched(p *hot.Post, t *hot.MatchTransport, code uintptr) uintptr {
	if code != hot.PostMatch {
		return code
	}
	b := &p.Bell
	b.Word, b.Rest = 0, 0
	p.Sent = uint32(direct.Call(&t.Post, uintptr(unsafe.Pointer(t)), uintptr(unsafe.Pointer(&p.Match)),
		uintptr(unsafe.Pointer(b)), 0))
	code = hot.PostDone
	if p.Sent != hot.PathSent {
		code = ownerOf(t).DirectRefused(p)
	}
	if b.Word != 0 || b.Rest != 0 {
		p.Code = uint32(code)
		return hot.PostRing
	}
	if gate := (*hot.Gate)(pointer(t.Gate)); gate != nil && gate.Word().Alone() {
		gate.Leave()
	}
	return code
}

// beginMatched serves a match transport from its first event on.
func beginMatched(p *hot.Poll, ep *hot.EP, rx *hot.Rx, t *hot.MatchTransport) uintptr {
	p.Messages, p.ToGo, p.Step = 0, 0, stepCheck
	beginDelivery(p, ep)
	return serveMatched(p, ep, rx, t)
}

// serveMatched takes in what a match transport finds, up to a batch of it, or as much as the reader has room for. The
// shim rings between a call of the transport and what it has found.
func serveMatched(p *hot.Poll, ep *hot.EP, rx *hot.Rx, t *hot.MatchTransport) uintptr {
	answered := p.Step == stepTransportFound
	if p.Step == stepTransportGiven && sated(p, t) {
		return endRound(p, ep, rx)
	}
	for ; ; answered = false {
		if !answered {
			p.Bell.Word = 0
			p.Answer = int32(direct.Call(&t.Next, uintptr(unsafe.Pointer(t)), uintptr(unsafe.Pointer(&p.Match)),
				uintptr(unsafe.Pointer(&p.Bell)), 0))
			if p.Bell.Word != 0 {
				p.Step = stepTransportFound
				return hot.PollRing
			}
		}
		switch p.Answer {
		case hot.TransportMatched:
			p.Messages++
			if code := completeMatched(p, ep, ownerOf(t)); code != hot.DeliveryDone {
				p.Step = stepTransportGiven
				return code
			}
			if sated(p, t) {
				return endRound(p, ep, rx)
			}
		case hot.TransportAgain:
		case hot.TransportGo:
			p.ToGo = 1
			return endRound(p, ep, rx)
		default:
			return endRound(p, ep, rx)
		}
	}
}

// endRound ends what a match transport has found. There is nothing else at such an endpoint: it has no inbound
// rings, and no post ring.
func endRound(p *hot.Poll, ep *hot.EP, rx *hot.Rx) uintptr {
	if p.Delivery.Todo != 0 && wakes(&p.Delivery, ep) {
		p.Step = stepTransportEnd
		return hot.PollWake
	}
	return roundEnded(p, rx)
}

// roundEnded is endRound behind the sleepers' waking.
func roundEnded(p *hot.Poll, rx *hot.Rx) uintptr {
	if p.Messages != 0 {
		p.Found = 1
	}
	if p.ToGo != 0 || p.Delivery.Todo&hot.TodoTriggered != 0 {
		return leaveToGo(p, rx)
	}
	unlease(p, rx)
	return next
}

// eventsAhead is how many events at most one poll takes in at a match transport that fills its reader before.
const eventsAhead = 16

// sated reports whether a poll takes no more in at a match transport. One whose reader is full goes on with events that
// are at hand, which the next reads, of any thread, find in the queue, without the lease.
func sated(p *hot.Poll, t *hot.MatchTransport) bool {
	if p.Reader.Left != 0 || p.Delivery.Reader|p.Delivery.TxReader == 0 {
		return p.Messages >= batch
	}
	if w := (*hot.Watch)(pointer(t.Watch)); p.Messages >= eventsAhead || w == nil || !w.Expects() {
		return true
	}
	ring := cqring.SlotsOf((*hot.CQ)(pointer(p.Reader.CQ)), 0)
	return !mpsc.View(&ring).HasRoom()
}

// completeMatched reports the end of an operation. It returns hot.DeliveryDone, DeliveryComplete or hot.PollMatched.
func completeMatched(p *hot.Poll, ep *hot.EP, e *matched.Endpoint) uintptr {
	var c matched.Completion
	switch wanted, ok := e.DirectEnd(&p.Match, &c); {
	case !ok:
		return hot.PollMatched
	case !wanted:
		return hot.DeliveryDone
	}
	d := &p.Delivery
	queue, to := ep.TxCQ, d.TxReader
	completes, wakes := !c.Inject && ep.Flags&hot.EPTxAlways != 0, uint32(hot.TodoWakeTxCQ)
	if c.Receive {
		queue, to = ep.RxCQ, d.Reader
		completes, wakes = ep.Flags&hot.EPRxSelective == 0, hot.TodoWakeCQ
	}
	word := c.Counted()
	stat(ep, word, 1)
	stat(ep, word+1, c.Bytes)
	d.Todo |= countMatched(ep, &c)
	if queue == 0 || !completes && (c.Inject || c.Flags&fi.Completion == 0) {
		return hot.DeliveryDone
	}
	q := (*hot.CQ)(pointer(queue))
	var s spot
	if !s.take(q, (*hot.Reader)(pointer(to))) {
		d.Entry = c.Entry
		return hot.DeliveryComplete
	}
	if s.fill(q, &c.Entry) {
		d.Todo |= wakes
	}
	return hot.DeliveryDone
}

// countMatched counts an operation that has ended, and returns hot.Todo*.
func countMatched(ep *hot.EP, c *matched.Completion) uint32 {
	switch flags := c.Entry.Flags; {
	case c.Receive:
		return countAs(ep.RxCntr, c.Bytes, hot.TodoWakeCntr)
	case flags&fi.Read != 0:
		return countAs(ep.ReadCntr, c.Bytes, hot.TodoWakeReadCntr)
	case flags&fi.Write != 0:
		return countAs(ep.WriteCntr, c.Bytes, hot.TodoWakeWriteCntr)
	}
	return countAs(ep.TxCntr, c.Bytes, hot.TodoWakeTxCntr)
}
