package rma

// How one-sided operations keep the order that an endpoint was asked for (package ordering).

// carriedOut reports whether a copy by this thread would overtake nothing that was
// sent to the peer.
func (in *Initiator) carriedOut(l *Link, p *Path) bool {
	return l.Order.Idle() && in.host.CaughtUp(l, p)
}

// begun counts a request that goes as messages, before the first is sent.
func (in *Initiator) begun(l *Link, req *Request) {
	if !in.rules.On() {
		return
	}
	req.flags |= flagOrdered
	if in.rules.Begin(&l.Order, req.flags&flagIsRead != 0) {
		req.flags |= flagHolds
		in.host.Hold(1)
	}
}

// over takes a request back that begun counted.
func (in *Initiator) over(l *Link, req *Request) {
	if req.flags&flagOrdered == 0 {
		return
	}
	holds := req.flags&flagHolds != 0
	l.Order.End(holds)
	if holds {
		in.host.Hold(-1)
	}
}

// unsent says that a request has messages left to send, and allSent that it has
// none any more, or has ended.
func (in *Initiator) unsent(l *Link) {
	if in.rules.On() {
		l.Order.Unsent(1)
		in.host.Hold(1)
	}
}

func (in *Initiator) allSent(l *Link) {
	if in.rules.On() {
		l.Order.Unsent(-1)
		in.host.Hold(-1)
	}
}
