package provider

import "github.com/weft-fabric/weft/provider/internal/ordering"

// How one-sided operations keep the order that an endpoint was asked for (package ordering).

// setFast opens the data plane when the endpoint is enabled, and closes it.
func (e *hotMemory) setFast(open bool) { e.fast.Open(e.hot, open) }

// hold keeps the data plane from posting, n times, or takes that back for n below 0.
func (e *hotMemory) hold(n int) { e.fast.Hold(e.hot, n) }

// order are the endpoint's rules.
func (e *attributes) order() ordering.Rules { return ordering.Rules(e.msgOrder) }

// orderedRMA reports whether the endpoint keeps one-sided operations in order.
func (e *attributes) orderedRMA() bool { return e.order().On() }

// inTurn reports whether an operation may be posted to a peer now.
func (e *attributes) inTurn(l *link, k ordering.Kind) bool { return e.order().InTurn(&l.order, k) }

// carriedOut reports whether a copy by this thread would overtake nothing that was
// sent to the peer.
func (e *peering) carriedOut(l *link, p *path) bool {
	if !l.order.Idle() {
		return false
	}
	if e.order()&ordering.AfterSend != 0 {
		return !e.iface.SendPending(p.Endpoint)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.filled { // several, if the peer is in the address vector several times
		if e.iface.PutPending(p.Endpoint, e.peers.At(uint64(i))) {
			return false
		}
	}
	return true
}

// begun counts a request that goes as messages, before the first is sent.
func (e *peering) begun(l *link, req *rmaRequest) {
	if !e.orderedRMA() {
		return
	}
	req.flags |= rmaOrdered
	if e.order().Begin(&l.order, req.flags&rmaIsRead != 0) {
		req.flags |= rmaHolds
		e.hold(1)
	}
}

// over takes a request back that begun counted.
func (e *hotMemory) over(l *link, req *rmaRequest) {
	if req.flags&rmaOrdered == 0 {
		return
	}
	holds := req.flags&rmaHolds != 0
	l.order.End(holds)
	if holds {
		e.hold(-1)
	}
}

// held says that a request has messages left to send, and released that it has
// none any more, or has ended.
func (e *peering) held(l *link) {
	if e.orderedRMA() {
		l.order.Unsent(1)
		e.hold(1)
	}
}

func (e *peering) released(l *link) {
	if e.orderedRMA() {
		l.order.Unsent(-1)
		e.hold(-1)
	}
}
