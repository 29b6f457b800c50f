package cq

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/mpsc"
)

const (
	slotBytes   = uint32(unsafe.Sizeof(hot.CQE{}))
	headerBytes = int(unsafe.Sizeof(hot.CQRing{}))
)

// ring is a view of one ring of a queue. Immutable.
type ring struct {
	mpsc.Ring
	// head is shared by the readers: CAS (H0), or a plain order of stores on an
	// exclusive queue. Free running.
	head *uint64
}

// newRing returns the view of the ring whose header is at base.
func newRing(base unsafe.Pointer, log2 uint32) ring {
	h := (*hot.CQRing)(base)
	return ring{
		Ring: mpsc.NewView(unsafe.Add(base, headerBytes), unsafe.Pointer(&h.Tail), log2, slotBytes),
		head: &h.Head,
	}
}

// turnOf returns the word of a ring's head line that says where the next read starts.
func turnOf(base unsafe.Pointer) *uint32 { return &(*hot.CQRing)(base).Turn }

func (r *ring) at(pos uint64) *hot.CQE { return (*hot.CQE)(r.Slot(pos)) }

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

// advance makes the slots from head up to end the caller's. (H0)
func (r *ring) advance(head, end uint64, exclusive bool) bool {
	if exclusive {
		order.Store64(r.head, end)
		return true
	}
	return atomic.CompareAndSwapUint64(r.head, head, end)
}

// scan looks for up to want entries from head on. It returns where they end, and
// whether an error follows.
func (r *ring) scan(head uint64, want int) (end uint64, bad bool) {
	for end = head; want > 0; end++ {
		mark, state, lapOK := r.Load(end)
		if state != hot.SlotReady || !lapOK {
			return end, false
		}
		if mark == hot.CQMarkError {
			return end, true
		}
		want--
	}
	return end, false
}

// pop takes up to len(dst) completions, as many as are ready in one step, and
// tells whether an error is at the head then.
func (r *ring) pop(dst []Entry, exclusive bool) (got int, bad bool) {
	for got < len(dst) && !bad {
		var end uint64
		head := atomic.LoadUint64(r.head)
		end, bad = r.scan(head, len(dst)-got)
		if end == head {
			break
		}
		if !r.advance(head, end, exclusive) {
			bad = false // another reader was faster: look again
			continue
		}
		for ; head != end; head++ {
			dst[got] = entryOf(r.at(head))
			got++
			r.Release(head)
		}
	}
	return got, bad
}

// bad tells whether an error is at the head.
func (r *ring) bad() bool {
	mark, state, lapOK := r.Load(atomic.LoadUint64(r.head))
	return state == hot.SlotReady && lapOK && mark == hot.CQMarkError
}

func entryOf(s *hot.CQE) Entry {
	return *(*Entry)(unsafe.Pointer(&s.Context))
}

// popError takes the error at the head.
func (r *ring) popError(exclusive bool) (e Entry, ok bool) {
	for {
		head := atomic.LoadUint64(r.head)
		mark, state, lapOK := r.Load(head)
		if state != hot.SlotReady || !lapOK || mark != hot.CQMarkError {
			return e, false
		}
		if r.advance(head, head+1, exclusive) {
			e = entryOf(r.at(head))
			r.Release(head)
			return e, true
		}
	}
}

// ready tells whether there is anything to read.
func (r *ring) ready() bool { return r.Ready(atomic.LoadUint64(r.head)) }

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
	return layout{log2: log2, nrings: nrings, stride: uint64(headerBytes) + uint64(slotBytes)<<log2}
}

func (l layout) bytes() int { return ringsAt + int(l.stride)*int(l.nrings) }

// lay puts a queue's tables into zeroed memory that stays where it is.
func lay(memory []byte, l layout) (*hot.CQ, []byte, []ring, *uint32) {
	base := unsafe.Pointer(unsafe.SliceData(memory))
	h := (*hot.CQ)(base)
	first := unsafe.Add(base, ringsAt)
	h.Rings = uintptr(first)
	h.RingStride = l.stride
	h.NRings = l.nrings
	h.Log2Slots = l.log2
	rings := make([]ring, l.nrings)
	for i := range rings {
		rings[i] = newRing(unsafe.Add(first, uint64(i)*l.stride), l.log2)
	}
	return h, memory[lastErrorAt : lastErrorAt+MaxErrData], rings, turnOf(first)
}
