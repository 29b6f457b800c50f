package hot

import "structs"

// Rings: what C and Go share of them. include/weft/ring.h has the steps in C, package mpsc in Go; both describe the
// sequence word.

// CacheLine is the unit of sharing, in bytes.
const CacheLine = 64

// States of a ring slot, in the low two bits of its sequence word.
//
//weft:enum weft_slot_state
const (
	SlotFree  = 0
	SlotTaken = 1
	SlotReady = 2
)

// Shifts of the sequence word's fields.
const (
	SeqOwnerShift = 2
	SeqOwnerMask  = 0xffff
	SeqLapShift   = 18
)

// Ring is a producer's or consumer's private view of a ring. The words it points to may be shared; the view itself is
// not, so that no other process can change the geometry under it.
//
//weft:name weft_ring
type Ring struct {
	_         structs.HostLayout
	Slots     uintptr `c:"unsigned char *"`    // first slot, cache-line aligned
	Tail      uintptr `c:"_Atomic uint64_t *"` // producers' hint, own cache line
	Log2Slots uint32  // number of slots is 1 << log2_slots
	SlotBytes uint32  // stride, multiple of CacheLine
}
