package dataplane

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/mpsc"
)

// One-sided operations that wait for the target's answer: fetching atomics, reads that are messages, and writes and
// atomics that complete when they are delivered. The posting thread finds an entry of the endpoint's table
// (takePending) and takes it when the operation is about to go out (beginPending), the answer completes it:
// hot.AMReadData with what was fetched (takeFetched), hot.AMRMADone of the others (takeDone). Refusals, the loss of a
// peer and a full queue are the runtime's (provider/internal/onesided), which takes values in by Fits and Place, too.

// DoneBytes are those of a hot.DoneHead.
const DoneBytes = int(unsafe.Sizeof(hot.DoneHead{}))

// awaitsDelivery reports whether a write, or an atomic operation that fetches nothing, completes when it is delivered.
// Of an injected one only a counter would say so.
func awaitsDelivery(p *hot.Post, ep *hot.EP) bool {
	return p.Flags&fi.DeliveryComplete != 0 && (p.Kind&hot.PostInject == 0 || ep.WriteCntr != 0)
}

// pendingAt is the entry at a place of a table.
func pendingAt(table uintptr, at uint64) *hot.Pending {
	return (*hot.Pending)(pointer(table + uintptr(at)*unsafe.Sizeof(hot.Pending{})))
}

// PendingIn returns the operation with an id in a table of count entries, nil: none there waits under that id.
func PendingIn(table uintptr, count, id uint64) *hot.Pending {
	at := id & math.MaxUint32
	if id&hot.PendingID == 0 || at >= count {
		return nil
	}
	f := pendingAt(table, at)
	if atomic.LoadUint32(&f.Busy) == 0 || uint64(f.Generation) != id>>32&math.MaxInt32 {
		return nil
	}
	return f
}

// takePending finds a free entry of a leased stripe and leaves the id of the operation that is to take it in
// p.Request. False: all wait for answers.
func takePending(p *hot.Post, ep *hot.EP, stripe *hot.Stripe) bool {
	number := (uintptr(unsafe.Pointer(stripe)) - ep.Stripes) / unsafe.Sizeof(*stripe)
	for range ep.PendingCount {
		i := stripe.PendingNext
		if stripe.PendingNext = i + 1; stripe.PendingNext >= ep.PendingCount {
			stripe.PendingNext = 0
		}
		at := uint64(number)*uint64(ep.PendingCount) + uint64(i)
		f := pendingAt(ep.Pendings, at)
		if atomic.LoadUint32(&f.Busy) != 0 {
			continue
		}
		f.Generation = (f.Generation + 1) & math.MaxInt32
		p.Request = hot.PendingID | uint64(f.Generation)<<32 | at
		return true
	}
	return false
}

// beginPending takes the entry that takePending has found, for an operation whose slot is claimed. slots are those of
// the peer's ring, flags those of the completion.
func beginPending(p *hot.Post, ep *hot.EP, slots uintptr, flags uint64) {
	f := pendingAt(ep.Pendings, p.Request&math.MaxUint32)
	f.Result, f.Bytes, f.Context, f.Dest, f.Ring = uint64(p.Result), p.Len, p.Context, p.Dest, slots
	f.Flags, f.Completes, f.Arrived = flags, 0, 0
	var e place
	if e.find(p, ep); e.at != 0 {
		f.Completes = 1
	}
	order.Store32(&f.Busy, 1)
}

// await takes the entry of a one-sided operation that is about to be sent, if it has one.
func await(p *hot.Post, ep *hot.EP, ring *mpsc.Ring, id uint8) {
	if id != hot.AMWrite && id != hot.AMAtomic && id != hot.AMRead || p.Request == 0 {
		return
	}
	flags := fi.RMA | fi.Write
	switch {
	case id == hot.AMWrite:
	case id == hot.AMRead:
		flags = fi.RMA | fi.Read
	case p.Atomic == hot.AtomicPlain:
		flags = fi.Atomic | fi.Write
	default:
		flags = fi.Atomic | fi.Read
	}
	beginPending(p, ep, ring.Hot().Slots, flags)
}

// pendingOf returns the operation that an answer of the peer with an address is for, nil if there is none.
func pendingOf(ep *hot.EP, addr, id uint64) *hot.Pending {
	f := PendingIn(ep.Pendings, uint64(ep.PendingCount)*uint64(ep.StripeMask+1), id)
	if f == nil || f.Dest != addr {
		return nil
	}
	return f
}

// Fits reports whether n bytes that belong at an offset are the next of the value of an operation.
func Fits(f *hot.Pending, at, n uint64) bool {
	return f.Flags&fi.Read != 0 && at == uint64(f.Arrived) && n <= f.Bytes-at
}

// Place copies n bytes at an address, which fit, to where the value of an operation goes, and reports whether they are
// the last of it.
func Place(f *hot.Pending, value uintptr, n uint64) (last bool) {
	move(uintptr(f.Result)+uintptr(f.Arrived), value, uintptr(n))
	f.Arrived += uint32(n)
	return uint64(f.Arrived) == f.Bytes
}

// takeFetched takes in the answer to an operation that fetches, or a piece of it. False: it is the runtime's.
func takeFetched(
	d *hot.Delivery, ep *hot.EP, src *hot.Source, addr uint64, owner uint32, slot *hot.Slot, m message,
) bool {
	f, n := pendingOf(ep, fullAddr(ep, src, addr), m.header), uint64(m.length())
	offset := atomic.LoadUint64((*uint64)(unsafe.Pointer(&slot.Body)))
	if f == nil || m.head() != fetchedHeadBytes || !Fits(f, offset, n) {
		return false
	}
	value := payloadOf(d, src, owner, slot, m)
	if value == 0 {
		return false
	}
	if uint64(f.Arrived)+n != f.Bytes {
		Place(f, value, n)
		return true
	}
	return endPending(d, ep, f, value, n, hot.TodoWakeReadCntr, ep.ReadCntr)
}

// takeDone takes in the answer that an operation which fetches nothing is done. False: it is the runtime's.
func takeDone(d *hot.Delivery, ep *hot.EP, addr uint64, slot *hot.Slot, m message) bool {
	h := (*hot.DoneHead)(unsafe.Pointer(&slot.Body))
	f := pendingOf(ep, addr, m.header)
	if f == nil || m.head() != uint32(DoneBytes) || m.length() != 0 || f.Flags&fi.Read != 0 ||
		atomic.LoadUint64(&h.Status) != 0 || atomic.LoadUint64(&h.Units) != 1 {
		return false
	}
	return endPending(d, ep, f, 0, 0, hot.TodoWakeWriteCntr, ep.WriteCntr)
}

// endPending completes an operation that has succeeded, with the last n bytes of its value at an address, 0: none. wake
// is the bit for those that wait for the hot.Cntr at the address counter, 0: none. False: the queue is full.
func endPending(
	d *hot.Delivery, ep *hot.EP, f *hot.Pending, value uintptr, n uint64, wake uint32, counter uintptr,
) bool {
	var s spot
	q := (*hot.CQ)(pointer(ep.TxCQ))
	completes := f.Completes != 0
	if completes && (q == nil || !s.take(q, (*hot.Reader)(pointer(d.TxReader)))) {
		return false
	}
	if value != 0 {
		Place(f, value, n)
	}
	e, bytes := EndPending(f)
	if completes && s.fill(q, &e) {
		d.Todo |= hot.TodoWakeTxCQ
	}
	d.Todo |= countAs(counter, bytes, wake)
	return true
}

// EndPending gives the entry of an operation that has ended back, which another may take then, and returns the
// completion and the bytes of the one that has ended.
func EndPending(f *hot.Pending) (e hot.CQE, bytes uint64) {
	e.Context, e.Flags, e.Src = f.Context, f.Flags, uint64(fi.AddrNotAvail)
	bytes = f.Bytes
	order.Store32(&f.Busy, 0)
	return e, bytes
}
