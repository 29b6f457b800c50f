package provider

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// Order among one-sided operations, for an endpoint that was asked for it
// (FI_ORDER_RMA_*, FI_ORDER_ATOMIC_* and those that relate them to sends).
//
// What goes to a peer as messages is carried out in the order in which it was
// sent, short writes and atomics of C too. So order takes three rules more, which
// endpoints that were not asked for it do not have:
//
//   - While an operation has messages left to send, because the ring was full,
//     whatever is posted to that peer finds no room (fi.EAGAIN).
//   - While a read that goes as messages is not answered, so do writes and
//     atomics (FI_ORDER_WAR and the like) and sends (FI_ORDER_SAR): the target
//     reads piece by piece, as there is room for its answers.
//   - The posting thread copies by itself only when the peer has carried out
//     what was sent before; else the operation goes as messages. Targets get no
//     share of it, and it is not cut into segments.
//
// C knows none of these rules. It is kept from posting (hot.EPFast) while one of
// the first two holds, for whichever peer.

// Message orders that ask for something.
const (
	rmaOrder = ^fi.OrderSAS

	orderWriteAfterRead = fi.OrderWAR | fi.OrderRMAWAR | fi.OrderAtomicWAR
	orderAfterSend      = fi.OrderRAS | fi.OrderWAS
)

// opKind is what an operation is to the rules.
type opKind int

const (
	opSend opKind = iota
	opRead
	opUpdate // a write, or an atomic operation of any kind
)

// fastGate says which thread may use the data plane of an endpoint's transmits.
type fastGate struct {
	mu    sync.Mutex // control operations, and posts and progress when a ring was full or a read goes as messages
	open  bool       // the endpoint is enabled
	holds int
}

// setFast opens the data plane when the endpoint is enabled, and closes it.
func (e *hotMemory) setFast(open bool) {
	e.fast.mu.Lock()
	defer e.fast.mu.Unlock()
	e.fast.open = open
	e.updateFast()
}

// hold keeps C from posting, n times, or takes that back for n below 0.
func (e *hotMemory) hold(n int) {
	e.fast.mu.Lock()
	defer e.fast.mu.Unlock()
	e.fast.holds += n
	e.updateFast()
}

func (e *hotMemory) updateFast() {
	flags := e.hot.Flags &^ hot.EPFast
	if e.fast.open && e.fast.holds == 0 {
		flags |= hot.EPFast
	}
	atomic.StoreUint32(&e.hot.Flags, flags)
}

// orderedRMA reports whether the endpoint keeps one-sided operations in order.
func (e *attributes) orderedRMA() bool { return e.msgOrder&rmaOrder != 0 }

// inTurn reports whether an operation may be posted to a peer now.
func (e *attributes) inTurn(l *link, k opKind) bool {
	if !e.orderedRMA() {
		return true
	}
	if l.unsent.Load() != 0 {
		return false
	}
	if l.reads.Load() == 0 {
		return true
	}
	switch k {
	case opSend:
		return e.msgOrder&fi.OrderSAR == 0
	case opUpdate:
		return e.msgOrder&orderWriteAfterRead == 0
	}
	return true
}

// carriedOut reports whether a copy by this thread would overtake nothing that was
// sent to the peer.
func (e *peering) carriedOut(l *link, p *path) bool {
	if l.oneSided.Load() != 0 {
		return false
	}
	if e.msgOrder&orderAfterSend != 0 {
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
	l.oneSided.Add(1)
	if req.flags&rmaIsRead != 0 && e.msgOrder&(orderWriteAfterRead|fi.OrderSAR) != 0 {
		req.flags |= rmaHolds
		l.reads.Add(1)
		e.hold(1)
	}
}

// over takes a request back that begun counted.
func (e *hotMemory) over(l *link, req *rmaRequest) {
	if req.flags&rmaOrdered == 0 {
		return
	}
	l.oneSided.Add(-1)
	if req.flags&rmaHolds != 0 {
		l.reads.Add(-1)
		e.hold(-1)
	}
}

// held says that a request has messages left to send, and released that it has
// none any more, or has ended.
func (e *peering) held(l *link) {
	if e.orderedRMA() {
		l.unsent.Add(1)
		e.hold(1)
	}
}

func (e *peering) released(l *link) {
	if e.orderedRMA() {
		l.unsent.Add(-1)
		e.hold(-1)
	}
}
