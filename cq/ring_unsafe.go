package cq

import (
	"unsafe"

	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/mpsc"
)

// ring is a view of one ring of a queue. Immutable.
type ring struct {
	mpsc.Ring             // of its producers
	read      cqring.Ring // of its readers
}

// fill writes e into a claimed slot and publishes it with a mark.
func (r *ring) fill(slot unsafe.Pointer, pos uint64, e *Entry, mark uint32) {
	s := (*hot.CQE)(slot)
	s.Context, s.Flags, s.Len, s.Buf = e.Context, e.Flags, e.Len, e.Buf
	s.Data, s.Tag, s.Src = e.Data, e.Tag, uint64(e.Src)
	r.Publish(slot, mark, pos)
}

func (r *ring) push(e *Entry, mark uint32, exclusive bool) bool {
	slot, pos, ok := r.Claim(hot.CQMarkEntry, exclusive)
	if ok {
		r.fill(slot, pos, e, mark)
	}
	return ok
}

func entryOf(s *hot.CQE) Entry {
	return *(*Entry)(unsafe.Pointer(&s.Context))
}

// popError takes the error at the head of a ring.
func popError(r cqring.Ring, exclusive bool) (e Entry, ok bool) {
	pos, ok := r.TakeError(exclusive, false)
	if ok {
		e = entryOf(r.At(pos))
		r.Release(pos)
	}
	return e, ok
}

// layout is where the parts of a queue lie in its memory: the hot table, the
// data of the last error, the rings.
type layout struct {
	log2   uint32
	nrings uint32
	stride uint64
}

const (
	lastErrorAt = int(unsafe.Sizeof(hot.CQ{}))
	ringsAt     = lastErrorAt + 128
)

func newLayout(log2, nrings uint32) layout {
	return layout{log2: log2, nrings: nrings, stride: uint64(cqring.HeaderBytes) + uint64(cqring.SlotBytes)<<log2}
}

func (l layout) bytes() int { return ringsAt + int(l.stride)*int(l.nrings) }

// lay puts a queue's tables into zeroed memory that stays where it is.
func lay(memory []byte, l layout) (*hot.CQ, []byte, []ring) {
	base := unsafe.Pointer(unsafe.SliceData(memory))
	h := (*hot.CQ)(base)
	first := unsafe.Add(base, ringsAt)
	h.Rings = uintptr(first)
	h.RingStride = l.stride
	h.NRings = l.nrings
	cqring.SetSlots(h, l.log2)
	rings := make([]ring, l.nrings)
	for i := range rings {
		slots := cqring.SlotsOf(h, uint32(i))
		rings[i] = ring{*mpsc.View(&slots), cqring.Of(h, uint32(i))}
	}
	return h, memory[lastErrorAt : lastErrorAt+MaxErrData], rings
}
