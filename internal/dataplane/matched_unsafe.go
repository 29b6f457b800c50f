package dataplane

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/matched"
)

// Endpoints whose device matches their messages (hot.MatchTransport). Package matched keeps their operations; the shim
// calls the device.

// matchedOf is the endpoint behind a match transport, nil: there is none.
func matchedOf(ep *hot.EP) *matched.Endpoint {
	transport := (*hot.MatchTransport)(pointer(atomic.LoadUintptr(&ep.Match)))
	if transport == nil {
		return nil
	}
	return (*matched.Endpoint)(pointer(transport.Owner))
}

// gateOf is the gate of an endpoint, nil: it has none, and no match transport.
func gateOf(ep *hot.EP) *hot.Gate {
	transport := (*hot.MatchTransport)(pointer(atomic.LoadUintptr(&ep.Match)))
	if transport == nil {
		return nil
	}
	return (*hot.Gate)(pointer(transport.Gate))
}

// LeaveGate leaves the gate that a poll is inside, if it is.
func LeaveGate(p *hot.Poll) {
	if p.Gated != 0 {
		gateOf(endpointAt(p.At)).Leave()
		p.Gated = 0
	}
}

// sendMatched posts a message at an endpoint with a match transport.
func sendMatched(p *hot.Post, e *matched.Endpoint) uintptr {
	p.Step = stepSent
	return e.DirectSend(p)
}

// accessMatched posts a read or write at one, or with atomic an atomic operation.
func accessMatched(p *hot.Post, e *matched.Endpoint, atomic bool) uintptr {
	p.Todo, p.Next = 0, 0
	p.Step = stepSent
	if atomic {
		return e.DirectAtomic(p)
	}
	return e.DirectTransfer(p)
}

// Receive posts a receive at an endpoint with a match transport, or takes an operation back that its device has not
// taken. It returns hot.PostMatch, PostAgain or PostGo. at is the address of a hot.Post.
func Receive(at, _, _, _ uintptr) uintptr {
	p := (*hot.Post)(pointer(at))
	p.Todo, p.Next = 0, 0
	e := matchedOf(endpoint(p.EP))
	switch {
	case e == nil:
		return hot.PostGo
	case p.Step == stepSent:
		return e.DirectRefused(p)
	case p.Kind&unlikely != 0 && !single(p):
		return hot.PostGo
	}
	p.Step = stepSent
	p.Thread = (*hot.Thread)(pointer(p.Self)).Number - 1
	return e.DirectReceive(p)
}

// serveMatched goes on with the events of a match transport.
func serveMatched(p *hot.Poll, ep *hot.EP, rx *hot.Rx, e *matched.Endpoint) uintptr {
	if p.Step == stepTransportFound {
		if p.Answer == hot.TransportGo {
			p.ToGo = 1
		}
		if p.Answer != hot.TransportMatched {
			return endTransport(p, ep, rx)
		}
		p.Messages++
		if code := completeMatched(p, ep, e); code != hot.DeliveryDone {
			p.Step = stepTransportGiven
			return code
		}
	}
	if p.Messages >= batch || p.Reader.Left == 0 && (p.Delivery.Reader != 0 || p.Delivery.TxReader != 0) {
		return endTransport(p, ep, rx)
	}
	return askTransport(p, ep)
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
