package cqring

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// Batch is a read of a queue: it goes through all rings, beginning where the last read ended, so that none starves, and
// takes completions up to an error. The caller copies those from Head up to End of ring N, which are its own, and
// releases each (Ring.Release). It holds no pointers, which would need write barriers.
type Batch struct {
	Head, End uint64
	N         uint32 // the ring at hand
	room      uint64 // entries that the reader has room for
	turn      uint32 // the ring that is next
	left      uint32 // rings that are left
	took      bool
	failed    bool // an error is at the head of the ring before turn
}

// Begin begins a read of up to room entries.
func Begin(q *hot.CQ, room uint64) Batch {
	return Batch{room: room, turn: atomic.LoadUint32(&headerOf(q, 0).Turn), left: q.NRings}
}

// Next takes what the next ring that has completions has. false: the read has ended.
func (b *Batch) Next(q *hot.CQ) bool {
	for b.left != 0 && b.room != 0 && !b.failed {
		b.left--
		if b.turn >= q.NRings {
			b.turn = 0
		}
		b.N = b.turn
		b.Head, b.End, b.failed = Of(q, b.N).Take(b.room, Exclusive(q))
		if !b.failed {
			b.turn++
		}
		if b.Head != b.End {
			b.room -= b.End - b.Head
			b.took = true
			return true
		}
	}
	if q.NRings > 1 && b.took && (b.failed || b.room == 0) {
		order.Store32(&headerOf(q, 0).Turn, b.turn)
	}
	return false
}

// Failed reports, once the read has ended, whether it took nothing because an error is next.
func (b *Batch) Failed() bool { return b.failed && !b.took }
