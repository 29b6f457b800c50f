// Package ordering has the order among one-sided operations of an endpoint that was asked for it (FI_ORDER_RMA_*,
// FI_ORDER_ATOMIC_* and those that relate them to sends), and the gate to its data plane.
//
// What goes to a peer as messages is carried out in the order in which it was
// sent, short writes and atomics of the data plane too. So order takes three rules more, which
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
// The data plane knows none of these rules. It is kept from posting ([Gate]) while one of
// the first two holds, for whichever peer.
package ordering

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
)

// Rules are the message orders that an endpoint was asked for (fi.Order*).
type Rules uint64

const (
	writeAfterRead = Rules(fi.OrderWAR | fi.OrderRMAWAR | fi.OrderAtomicWAR)
	// AfterSend are the orders of one-sided operations after sends.
	AfterSend = Rules(fi.OrderRAS | fi.OrderWAS)
	sendAfter = Rules(fi.OrderSAR)
)

// Kind is what an operation is to the rules.
type Kind int

// The kinds of operations.
const (
	Send Kind = iota
	Read
	Update // a write, or an atomic operation of any kind
)

// Peer counts the one-sided operations that go to a peer as messages, for an endpoint whose rules are On. Added to by
// posting threads, subtracted from by the lease holder, or by a posting thread; read by posting threads; sequentially
// consistent.
type Peer struct {
	operations atomic.Int32 // that are not ended
	unsent     atomic.Int32 // that have messages left to send
	reads      atomic.Int32 // reads that others wait for
}

// On reports whether one-sided operations are kept in order.
func (r Rules) On() bool { return r&^Rules(fi.OrderSAS) != 0 }

// InTurn reports whether an operation may be posted to a peer now.
func (r Rules) InTurn(p *Peer, k Kind) bool {
	if !r.On() {
		return true
	}
	if p.unsent.Load() != 0 {
		return false
	}
	if p.reads.Load() == 0 {
		return true
	}
	switch k {
	case Send:
		return r&sendAfter == 0
	case Update:
		return r&writeAfterRead == 0
	}
	return true
}

// Idle reports whether all operations on the peer are ended.
func (p *Peer) Idle() bool { return p.operations.Load() == 0 }

// Begin counts an operation that goes as messages, before the first is sent. holds: others wait for it, a read.
func (r Rules) Begin(p *Peer, read bool) (holds bool) {
	p.operations.Add(1)
	if holds = read && r&(writeAfterRead|sendAfter) != 0; holds {
		p.reads.Add(1)
	}
	return holds
}

// End takes an operation back that Begin counted.
func (p *Peer) End(holds bool) {
	p.operations.Add(-1)
	if holds {
		p.reads.Add(-1)
	}
}

// Unsent counts operations that have messages left to send, n below 0: that have none any more, or have ended.
func (p *Peer) Unsent(n int32) { p.unsent.Add(n) }
