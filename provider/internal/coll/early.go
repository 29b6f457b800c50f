package coll

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Messages of collectives that come before their receive begins: a member keeps them in the order in which they came.

// earlyKind is what such a message is.
type earlyKind uint8

const (
	earlyPayload earlyKind = iota // a step's payload
	earlyRTS                      // a rendezvous: its sender's operation waits
	earlyChunk                    // a fragment of a chunk, as all that follow of an all-to-all that an engine orders
	earlyTarget                   // what a peer offers
	earlyGrant                    // a part that may be fetched
	earlyWord                     // a receiver's credit
)

func (k earlyKind) String() string {
	return [...]string{"steps", "rendezvous", "chunks", "targets", "grants", "words"}[k]
}

// ordered reports whether the message is of an all-to-all that an engine orders.
func (k earlyKind) ordered() bool { return k >= earlyChunk }

// earlyStep is such a message.
type earlyStep struct {
	next    *earlyStep
	kind    earlyKind
	head    wire.CollLong   // of a rendezvous; else the operation, and the length of the payload
	payload uint64          // address in the pool, 0: none
	part    exchange.Chunk  // of a chunk or grant
	target  wire.CollTarget // of a target
	word    exchange.Word   // of a word
}

// earlyOffer is what a target, grant or word counts among a member's early ones, in bytes: more than it costs, so that
// no member has many kept.
const earlyOffer = 8 << 10

// maxEarlyChunks bounds what is kept of a member's chunks: those of as many operations as it
// may have under way, and earlyOffer for each of its offers and credits.
const maxEarlyChunks = maxCollectives * (exchange.Early*exchangeChunk*5/4 + 2*earlyOffer)

// maxAhead is how many operations a member may be ahead. No member that waits
// for its own completions comes near it.
const maxAhead = 1 << 24

// holdStep keeps a message until its receive begins. It returns false if that cannot be.
func (c *Protocol) holdStep(g *Group, m *collMember, h *earlyStep, payload []byte) bool {
	if int32(h.head.Seq-g.runs.started) > maxAhead {
		c.malformed(m.src, "step of operation %d while %d is the next", h.head.Seq, g.runs.started)
		return false
	}
	step := c.spareEarly
	if step == nil {
		step = &earlyStep{}
	} else {
		c.spareEarly = step.next
	}
	addr, err := c.ep.Hold(payload, int(h.cost()))
	if err != nil {
		g.warn("no memory to hold a message: %v", err)
		step.next, c.spareEarly = c.spareEarly, step
		c.doom(g, h.head.Seq, fi.ENOMEM)
		return false
	}
	*step = *h
	step.payload = addr
	if m.ahead == nil {
		m.ahead, m.aheadLast = step, step
	} else {
		m.aheadLast.next, m.aheadLast = step, step
	}
	return true
}

// cost is what the message counts among unexpected ones, in bytes.
func (h *earlyStep) cost() uint64 {
	if h.kind == earlyRTS {
		return 0 // its sender's operation waits, and those are few
	}
	return earlyCost + h.head.Length
}

// share is what the message counts among a member's early ones of all-to-alls that an engine orders, in bytes.
func (h *earlyStep) share() int {
	if h.kind != earlyChunk {
		return earlyOffer
	}
	return int(h.head.Length)
}

// takeEarly takes a member's first early message of an operation.
func (m *collMember) takeEarly(seq uint32) *earlyStep {
	var before *earlyStep
	for h := m.ahead; h != nil; before, h = h, h.next {
		if h.head.Seq != seq {
			continue
		}
		if before == nil {
			m.ahead = h.next
		} else {
			before.next = h.next
		}
		if m.aheadLast == h {
			m.aheadLast = before
		}
		h.next = nil
		if h.kind.ordered() {
			m.early -= h.share()
		}
		return h
	}
	return nil
}

// freeEarly gives an unexpected message's memory back.
func (c *Protocol) freeEarly(h *earlyStep) {
	n := 0
	if h.payload != 0 {
		n = int(h.head.Length)
	}
	c.ep.Unhold(h.payload, n, int(h.cost()))
	*h = earlyStep{next: c.spareEarly}
	c.spareEarly = h
}

// begun returns the operation that a member's message is for, advancing until goOn. Without one that goes on here it
// returns nil: a message that comes early is kept, bytes that come late are answered.
func (xs *exchanges) begun(g *Group, m *collMember, h *earlyStep, payload []byte) *collOp {
	switch o := g.runs.under[h.head.Seq]; {
	case o == nil && g.runs.over(h.head.Seq):
		// Its operation has failed here, or has nothing for the peer, which hears of that.
		if h.kind != earlyTarget && h.kind != earlyWord {
			xs.unexpected(m, h.head.Seq)
		}
	case o == nil && m.early+h.share() > maxEarlyChunks:
		xs.c.malformed(m.src, "%v of operations that have not begun, beside %d bytes", h.kind, m.early)
	case o == nil:
		if xs.c.holdStep(g, m, h, payload) {
			m.early += h.share()
		}
	case o.exchange == nil:
		xs.c.unlike(o, &h.head.CollStep)
	default:
		o.advancing = true
		return o
	}
	return nil
}
