// Package cqring has the steps on the rings of completion queues (struct weft_hot_cq) that package cq and the data
// plane share. They need nothing of the runtime. Package cq says what the rings are for.
//
// A ring is one of package mpsc with a head word above it, which its readers share. The owner field of a slot's
// sequence word says what the slot holds (hot.CQMark*), so that a reader, which checks before it owns the slots, reads
// sequence words only. One ordering point stands beside package mpsc's:
//
//	H0 take   CAS on head: the slots below are this reader's (L0 made them visible)
package cqring

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/mpsc"
)

// Sizes in bytes: of what stands before the slots of a ring, and of a slot.
const (
	HeaderBytes = int(unsafe.Sizeof(hot.CQRing{}))
	SlotBytes   = uint32(unsafe.Sizeof(hot.CQE{}))
)

// Ring is one ring of a queue, as its readers use it. Readers share the head: CAS (H0), or a plain order of stores on a
// queue that one thread at a time uses; it is free running. A Ring is passed by value, so that it needs no memory.
type Ring struct {
	header *hot.CQRing // the slots follow
	log2   uint32
}

// pointer turns an address off the Go heap into a pointer.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// SetSlots says that the rings of a queue have two to the power log2 slots each. The queue is not in use yet.
func SetSlots(q *hot.CQ, log2 uint32) {
	q.Log2Slots, q.Last = log2, (1<<log2-1)*uint64(SlotBytes)
}

// headerOf returns what stands before the slots of ring n of a queue.
func headerOf(q *hot.CQ, n uint32) *hot.CQRing {
	return (*hot.CQRing)(pointer(q.Rings + uintptr(n)*uintptr(q.RingStride)))
}

// SlotsOf returns ring n of a queue as producers use it.
func SlotsOf(q *hot.CQ, n uint32) hot.Ring {
	at := q.Rings + uintptr(n)*uintptr(q.RingStride)
	return hot.Ring{
		Slots: at + unsafe.Sizeof(hot.CQRing{}), Tail: at + unsafe.Offsetof(hot.CQRing{}.Tail), Log2Slots: q.Log2Slots,
		SlotBytes: SlotBytes,
	}
}

// Of returns ring n of a queue.
func Of(q *hot.CQ, n uint32) Ring { return Ring{headerOf(q, n), q.Log2Slots} }

// Exclusive reports whether one thread at a time uses a queue.
func Exclusive(q *hot.CQ) bool { return atomic.LoadUint32(&q.Flags)&hot.CQExclusive != 0 }

// Share ends that one thread at a time uses a queue. A thread that is at the queue may not have seen it on return.
func Share(q *hot.CQ) { atomic.AndUint32(&q.Flags, ^uint32(hot.CQExclusive)) }

// Empty reports whether nothing is on the rings of the queue: two loads for each. Any thread may call it.
func Empty(q *hot.CQ) bool {
	n, last := q.NRings, q.Last
	for r := pointer(q.Rings); ; r = unsafe.Add(r, q.RingStride) {
		place := atomic.LoadUint64(&(*hot.CQRing)(r).Head) * uint64(SlotBytes) & last
		if atomic.LoadUint64(&(*first)(unsafe.Add(r, place)).slot.Seq)&ready != 0 {
			return false
		}
		if n--; n == 0 {
			return true
		}
	}
}

// first is a ring with its first slot.
type first struct {
	hot.CQRing
	slot hot.CQE
}

// ready is a bit that the sequence word of a slot has in one state only.
const ready = hot.SlotReady

var _ [0]struct{} = [ready & (hot.SlotFree | hot.SlotTaken)]struct{}{}

// At returns the slot at a position.
func (r Ring) At(pos uint64) *hot.CQE {
	return (*hot.CQE)(unsafe.Add(unsafe.Pointer(r.header),
		uint64(HeaderBytes)+pos&(1<<(r.log2&63)-1)*uint64(SlotBytes)))
}

// mark is what the slot at a position holds: hot.CQMarkEntry or hot.CQMarkError; any other value: nothing that is
// ready. (L0)
func (r Ring) mark(pos uint64) uint64 {
	other := atomic.LoadUint64(&r.At(pos).Seq) ^ (mpsc.Sequence(pos, r.log2) | hot.SlotReady)
	return bits.RotateLeft64(other, -hot.SeqOwnerShift)
}

// Unread returns about how many entries are unread.
func (r Ring) Unread() uint64 {
	return atomic.LoadUint64(&r.header.Tail) - atomic.LoadUint64(&r.header.Head)
}

// Readable reports whether there is anything to read.
func (r Ring) Readable() bool {
	m := r.mark(atomic.LoadUint64(&r.header.Head))
	return m == hot.CQMarkEntry || m == hot.CQMarkError
}

// Failed reports whether an error is at the head.
func (r Ring) Failed() bool { return r.mark(atomic.LoadUint64(&r.header.Head)) == hot.CQMarkError }

// Release gives the slot at a position, which was taken, back to producers.
func (r Ring) Release(pos uint64) {
	order.Store64(&r.At(pos).Seq, mpsc.Sequence(pos+1<<(r.log2&63), r.log2))
}

// advance makes the slots from head up to end the caller's. (H0)
func (r Ring) advance(head, end uint64, exclusive bool) bool {
	if exclusive {
		order.Store64(&r.header.Head, end)
		return true
	}
	return atomic.CompareAndSwapUint64(&r.header.Head, head, end)
}

// scan finds up to want entries from head on. It returns where they end, and whether an error follows.
func (r Ring) scan(head, want uint64) (end uint64, failed bool) {
	for end = head; want > 0; end++ {
		if m := r.mark(end); m != hot.CQMarkEntry {
			return end, m == hot.CQMarkError
		}
		want--
	}
	return end, false
}

// Take makes up to want completions, as many as are ready, the caller's, which copies each slot from head up to end and
// releases it. failed says that an error follows them. exclusive says that one thread at a time uses the queue.
func (r Ring) Take(want uint64, exclusive bool) (head, end uint64, failed bool) {
	for {
		head = atomic.LoadUint64(&r.header.Head)
		if end, failed = r.scan(head, want); end == head || r.advance(head, end, exclusive) {
			return head, end, failed
		} // else another reader was faster
	}
}

// NextError returns the ring whose error is read next, and whether there is one.
func NextError(q *hot.CQ) (r Ring, ok bool) {
	n := atomic.LoadUint32(&headerOf(q, 0).Turn)
	for range q.NRings {
		if n >= q.NRings {
			n = 0
		}
		if r = Of(q, n); r.Failed() {
			return r, true
		}
		n++
	}
	return r, false
}

// Brief is [hot.CQE].Src of an error of which its entry says all (hot.CQEError): why an operation failed.
func Brief(err, provErrno int32) uint64 { return uint64(uint32(err))<<32 | uint64(uint32(provErrno)) }

// OfBrief is the opposite of Brief.
func OfBrief(src uint64) (err, provErrno int32) { return int32(src >> 32), int32(uint32(src)) }

// TakeError makes the error at the head the caller's, which copies the slot at pos and releases it. With brief it takes
// only one of which the entry says all: until the head is advanced the slot stays as it was read.
func (r Ring) TakeError(exclusive, brief bool) (pos uint64, ok bool) {
	for {
		pos = atomic.LoadUint64(&r.header.Head)
		if r.mark(pos) != hot.CQMarkError || brief && atomic.LoadUint64(&r.At(pos).Buf) != 0 {
			return pos, false
		}
		if r.advance(pos, pos+1, exclusive) {
			return pos, true
		}
	}
}
