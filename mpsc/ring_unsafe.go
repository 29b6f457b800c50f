package mpsc

import (
	"structs"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// MaxLog2 is the largest ring size [NewView] takes, as a power of two.
const MaxLog2 = 30

// Ring is a private view of a ring. It has the layout of [hot.Ring] (struct
// weft_ring), with pointers, so that a ring on the Go heap stays alive while
// its view does. Immutable; copies are equal. The zero Ring is not usable.
type Ring struct {
	_         structs.HostLayout
	slots     unsafe.Pointer
	tail      *uint64
	log2      uint32
	slotBytes uint32
}

// ValidGeometry reports whether [NewView] accepts the number of slots and their
// size in bytes. Callers ask it before they use numbers that others wrote.
func ValidGeometry(log2, slotBytes uint32) bool {
	return log2 <= MaxLog2 && slotBytes != 0 && slotBytes%hot.CacheLine == 0 &&
		slotBytes <= 1<<20
}

// NewView returns the view of the ring of 1<<log2 slots of slotBytes bytes
// each at slots, whose tail word is at tail. Both must be aligned to 8 bytes,
// and should be to a cache line. It panics where [ValidGeometry] says no.
func NewView(slots, tail unsafe.Pointer, log2, slotBytes uint32) Ring {
	if !ValidGeometry(log2, slotBytes) || slots == nil || tail == nil ||
		uintptr(slots)%8 != 0 || uintptr(tail)%8 != 0 {
		panic("mpsc: bad ring geometry")
	}
	return Ring{slots: slots, tail: (*uint64)(tail), log2: log2, slotBytes: slotBytes}
}

// View returns h itself as a Ring. The memory that h points to must be off the
// Go heap, or kept alive in another way.
func View(h *hot.Ring) *Ring { return (*Ring)(unsafe.Pointer(h)) }

// Hot returns the ring as the tables that C reads keep it.
func (r *Ring) Hot() hot.Ring {
	return hot.Ring{
		Slots:     uintptr(r.slots),
		Tail:      uintptr(unsafe.Pointer(r.tail)),
		Log2Slots: r.log2,
		SlotBytes: r.slotBytes,
	}
}

// Slots returns the number of slots.
func (r *Ring) Slots() uint64 { return 1 << (r.log2 & 63) }

// SlotBytes returns the size of a slot in bytes, its sequence word included.
func (r *Ring) SlotBytes() uint32 { return r.slotBytes }

// Tail returns the producers' hint: at least that many positions have been
// claimed since the ring was empty and new, unless a hostile peer wrote it.
func (r *Ring) Tail() uint64 { return atomic.LoadUint64(r.tail) }

// TailWord returns the word of the hint, for the consumer that repairs it.
func (r *Ring) TailWord() *uint64 { return r.tail }

// Slot returns the slot that serves position pos, sequence word first. It is
// inside the ring for every pos.
func (r *Ring) Slot(pos uint64) unsafe.Pointer {
	i := pos & (1<<(r.log2&63) - 1)
	return unsafe.Add(r.slots, i*uint64(r.slotBytes))
}

func (r *Ring) word(pos uint64) *uint64 { return (*uint64)(r.Slot(pos)) }

// seq returns the sequence word of position pos without owner and state.
func (r *Ring) seq(pos uint64) uint64 { return Sequence(pos, r.log2) }

// Sequence is the sequence word of a position without owner and state, in a ring of 1<<log2 slots.
func Sequence(pos uint64, log2 uint32) uint64 { return pos >> (log2 & 63) << hot.SeqLapShift }

// Claim takes the next free slot for owner (at most [hot.SeqOwnerMask]) and
// returns it with its position; ok is false when the ring is full. exclusive
// says that the caller is the only producer, which saves the locked
// instruction. The caller writes the slot behind its first 8 bytes and then
// calls [Ring.Publish]. (C0)
func (r *Ring) Claim(owner uint32, exclusive bool) (slot unsafe.Pointer, pos uint64, ok bool) {
	pos = atomic.LoadUint64(r.tail)
	for step := uint64(0); ; {
		slot = r.Slot(pos)
		seq := (*uint64)(slot)
		free := r.seq(pos)
		word := atomic.LoadUint64(seq)
		if word == free {
			taken := free | uint64(owner&hot.SeqOwnerMask)<<hot.SeqOwnerShift | hot.SlotTaken
			if exclusive {
				order.Store64(seq, taken)
				order.Store64(r.tail, pos+1)
				return slot, pos, true
			}
			if atomic.CompareAndSwapUint64(seq, word, taken) {
				order.Store64(r.tail, pos+1)
				return slot, pos, true
			}
		} else {
			ahead := int64(word-free) >> hot.SeqLapShift
			if ahead < 0 {
				return nil, 0, false // still in use from the lap before: full
			}
			if ahead > 1 { // stale tail: this slot's position of the lap before was claimed, so all below were
				pos += uint64(ahead-1) << (r.log2 & 63)
			}
		}
		pos++ // another producer has this one
		if step++; step > r.Slots() {
			return nil, 0, false
		}
	}
}

// Free reports whether the slot at pos is free for that position.
func (r *Ring) Free(pos uint64) bool { return atomic.LoadUint64(r.word(pos)) == r.seq(pos) }

// Released reports to a producer whether the consumer is done with the message at pos.
func (r *Ring) Released(pos uint64) bool {
	return int64(atomic.LoadUint64(r.word(pos))-r.seq(pos))>>hot.SeqLapShift > 0
}

// Take claims the slot at pos for owner. The caller is the only producer, pos is the tail, and the slot is known to be
// free.
func (r *Ring) Take(owner uint32, pos uint64) unsafe.Pointer {
	slot := r.Slot(pos)
	order.Store64((*uint64)(slot), r.seq(pos)|uint64(owner&hot.SeqOwnerMask)<<hot.SeqOwnerShift|hot.SlotTaken)
	order.Store64(r.tail, pos+1)
	return slot
}

// HasRoom reports whether a claim has a chance now.
func (r *Ring) HasRoom() bool {
	pos := atomic.LoadUint64(r.tail)
	return int64(atomic.LoadUint64(r.word(pos))-r.seq(pos)) >= 0
}

// Publish makes the slot that [Ring.Claim] returned for owner at pos visible
// to the consumer. The slot is the consumer's from then on. (P0)
func (r *Ring) Publish(slot unsafe.Pointer, owner uint32, pos uint64) {
	order.Store64((*uint64)(slot),
		r.seq(pos)|uint64(owner&hot.SeqOwnerMask)<<hot.SeqOwnerShift|hot.SlotReady)
}

// Load reads the sequence word of the slot at pos once: the owner, the state
// ([hot.SlotFree], [hot.SlotTaken], [hot.SlotReady] or 3, which only a hostile
// peer writes), and whether the slot is in the lap of pos. With lapOK and
// [hot.SlotReady] the body is visible and stays as it is, hostile peers apart,
// until [Ring.Release]. (L0)
func (r *Ring) Load(pos uint64) (owner uint32, state int, lapOK bool) {
	word := atomic.LoadUint64(r.word(pos))
	return uint32(word>>hot.SeqOwnerShift) & hot.SeqOwnerMask, int(word & 3),
		(word^r.seq(pos))>>hot.SeqLapShift == 0
}

// Ready reports whether the slot at pos holds a message. (L0)
func (r *Ring) Ready(pos uint64) bool {
	return (atomic.LoadUint64(r.word(pos))^(r.seq(pos)|hot.SlotReady))&^(hot.SeqOwnerMask<<hot.SeqOwnerShift) == 0
}

// Head returns the slot at pos and its owner if it holds a message, else nil: [Ring.Load] and [Ring.Slot] in one. (L0)
func (r *Ring) Head(pos uint64) (slot unsafe.Pointer, owner uint32) {
	slot = r.Slot(pos)
	word := atomic.LoadUint64((*uint64)(slot))
	if !arrives(word, r.seq(pos)|hot.SlotReady) {
		return nil, 0
	}
	return slot, uint32(word>>hot.SeqOwnerShift) & hot.SeqOwnerMask
}

// Release gives the slot at pos, which was ready, back to the producers. The
// consumer goes on with pos+1. (R0)
func (r *Ring) Release(pos uint64) { r.ReleaseSlot(r.Slot(pos), pos) }

// ReleaseSlot is [Ring.Release] for a caller that has the slot at pos.
func (r *Ring) ReleaseSlot(slot unsafe.Pointer, pos uint64) {
	order.Store64((*uint64)(slot), r.seq(pos)+1<<hot.SeqLapShift)
}

// Reclaim takes back the slot at pos from a producer that claimed it and died: the slot goes to the producers of the
// next lap, and true means for the consumer to go on with pos+1. False means that the slot is not taken by owner at
// pos, because it was published before; check again. The caller must know that no thread of owner runs any more: a
// publish after Reclaim would corrupt the ring.
func (r *Ring) Reclaim(pos uint64, owner uint32) bool {
	taken := r.seq(pos) | uint64(owner&hot.SeqOwnerMask)<<hot.SeqOwnerShift | hot.SlotTaken
	return atomic.CompareAndSwapUint64(r.word(pos), taken, r.seq(pos+r.Slots()))
}
