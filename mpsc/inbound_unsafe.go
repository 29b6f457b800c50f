package mpsc

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// The consumer's end of an inbound ring ([hot.Inbound]), as the lease holder moves it and any thread reads it. What
// [Ring] computes of a position stands there: where the next slot is, and what its sequence word is when it holds a
// message. So a poll that finds nothing takes three loads.
//
// Head is behind At and that behind Want, each with release (A0): a reader of a new At finds its Want, too (A1). One
// that finds an old At beside a new Want finds nothing, as the slot there is not the next one any more.

// SetHead has a position be the next one. The caller holds the lease, or no thread polls yet; Ring is set. (A0)
func SetHead(in *hot.Inbound, pos uint64) {
	r := View(&in.Ring)
	in.End = uint64(in.Ring.Slots) + r.Slots()*uint64(in.Ring.SlotBytes)
	order.Store64(&in.Want, r.seq(pos)|hot.SlotReady)
	order.Store64(&in.At, uint64(uintptr(r.Slot(pos))))
	order.Store64(&in.Head, pos)
}

// Arrived reports whether the next slot holds a message. Any thread may ask. (A1, L0)
func Arrived(in *hot.Inbound) bool {
	word := atomic.LoadUint64((*uint64)(slotAt(atomic.LoadUint64(&in.At))))
	return arrives(word, atomic.LoadUint64(&in.Want))
}

// Next returns the next slot and its owner if it holds a message, else nil. The caller holds the lease. (L0)
func Next(in *hot.Inbound) (slot unsafe.Pointer, owner uint32) {
	slot = slotAt(in.At)
	word := atomic.LoadUint64((*uint64)(slot))
	if !arrives(word, in.Want) {
		return nil, 0
	}
	return slot, uint32(word>>hot.SeqOwnerShift) & hot.SeqOwnerMask
}

// Pass gives the next slot, which was ready, back to the producers, and goes on to the one behind it. The caller holds
// the lease. (R0, A0)
func Pass(in *hot.Inbound) {
	at, want := in.At, in.Want
	order.Store64((*uint64)(slotAt(at)), want+(1<<hot.SeqLapShift-hot.SlotReady))
	at += uint64(in.Ring.SlotBytes)
	if at == in.End {
		order.Store64(&in.Want, want+1<<hot.SeqLapShift)
		at = uint64(in.Ring.Slots)
	}
	order.Store64(&in.At, at)
	order.Store64(&in.Head, in.Head+1)
}

// arrives reports whether a sequence word is that of a message, of any owner, in a slot of which want is known.
func arrives(word, want uint64) bool { return (word^want)&^(hot.SeqOwnerMask<<hot.SeqOwnerShift) == 0 }

// slotAt turns an address in a ring, off the Go heap, into a pointer.
func slotAt(address uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }
