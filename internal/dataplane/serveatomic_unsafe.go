package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw/loopback/outbound"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
	"github.com/weft-fabric/weft/provider/atomics"
)

// The target's side of atomic operations: package atomics performs them, as it does for the runtime.

// serveAtomic performs an operation.
func serveAtomic(
	d *hot.Delivery, ep *hot.EP, src *hot.Source, addr uint64, owner uint32, slot *hot.Slot, m *message,
) bool {
	if m.head != uint32(atomicHeadBytes) {
		return false
	}
	head := *(*hot.AtomicHead)(unsafe.Pointer(&slot.Body))
	job := atomics.Job{Op: fi.Op(head.Op), Datatype: fi.Datatype(head.Datatype), Count: int(head.Count)}
	n := uint64(head.Count) * uint64(job.Datatype.Size())
	plain, compares, reads := head.Kind == hot.AtomicPlain, head.Kind == hot.AtomicCompare, job.Op == fi.OpRead
	want := n
	if reads {
		want = 0
	}
	if compares {
		want += n
	}
	if !atomics.Valid(atomics.Kind(head.Kind), job.Datatype, job.Op) || !atomics.Direct(job.Datatype) ||
		n == 0 || n > atomics.MaxBytes || head.Last != 1 || head.At != 0 || uint64(m.length) != want ||
		!plain && head.Request == 0 {
		return false
	}
	to := regionAt(ep, head.Key, m.header, n, rightsOf(uint32(head.Kind), reads))
	payload := payloadOf(d, src, owner, slot, m)
	if payload == 0 || to == 0 || to%uintptr(atomics.Align(job.Datatype)) != 0 {
		return false
	}
	job.Target = pointer(to)
	if !reads {
		job.Operand = pointer(payload)
	}
	if compares {
		job.Compare = pointer(payload + uintptr(n))
	}
	if !job.TryLock() {
		return false
	}
	done := true
	if plain {
		job.Perform()
		if d.Request = head.Request; d.Request == 0 {
			d.Stream = 1
		}
	} else {
		done = serveFetch(d, ep, back(ep, src, addr), job, head.Request, n)
	}
	job.Unlock()
	if done {
		stat(ep, stats.RxServedAtomics, 1)
	}
	return done
}

// serveFetch performs an operation on n bytes and answers with what was there before. The operation's locked
// instruction waits for all stores before it, and a store to the answer's slot waits for the line, which the initiator
// polls. So where the slot is known to be free, it is taken after an operation on one element of up to 8 bytes: claim,
// answer and publication are then one burst of stores.
func serveFetch(d *hot.Delivery, ep *hot.EP, peer *hot.Peer, job atomics.Job, request, n uint64) bool {
	if peer == nil {
		return false
	}
	slots := atomic.LoadUintptr(&peer.Slots)
	if slots == 0 || atomic.LoadUint32((*uint32)(pointer(peer.RxState)))&hot.RxGone != 0 {
		return false
	}
	view := ringOf(peer, slots)
	ring, exclusive := mpsc.View(&view), peer.Exclusive != 0
	if n > hot.SlotBody-fetchedHeadBytes {
		return fetchBounced(d, ep, peer, ring, job, request, n)
	}
	var before uint64
	first := job.Count == 1 && n <= 8 && outbound.Sure(ring, exclusive)
	if first {
		job.Result = unsafe.Pointer(&before)
		job.Perform()
	}
	slot, pos, ok := outbound.Claim(ring, peer.Owner, exclusive)
	if !ok {
		return false
	}
	outbound.Put(slot, hot.AMReadData, 0, fetchedHeadBytes, int(n), request)
	words := (*[2]uint64)(unsafe.Pointer(&slot.Body))
	words[0] = 0 // the offset
	if first {
		words[1] = before
	} else {
		job.Result = unsafe.Pointer(&words[1])
		job.Perform()
	}
	answered(d, peer, ring, slot, pos)
	return true
}

// fetchBounced performs an operation on n bytes, more than fit a slot, and answers through a bounce buffer of the
// progress lease's holder.
func fetchBounced(
	d *hot.Delivery, ep *hot.EP, peer *hot.Peer, ring *mpsc.Ring, job atomics.Job, request, n uint64,
) bool {
	if n > uint64(ep.EagerMax) || !outbound.Room(ring, peer.Exclusive != 0) {
		return false
	}
	b, index := outbound.FreeBounce(stripeAt(ep, ep.StripeMask+1))
	if b == nil {
		return false
	}
	slot, pos, ok := outbound.Claim(ring, peer.Owner, peer.Exclusive != 0)
	if !ok {
		return false
	}
	job.Result = pointer(outbound.Payload(b))
	job.Perform()
	outbound.Mark(b, peer.Owner, peer.Peer)
	outbound.Put(slot, hot.AMReadData, hot.SlotBounce, fetchedHeadBytes, int(n), request)
	*(*uint64)(unsafe.Pointer(&slot.Body)) = 0 // the offset
	*(*hot.BounceRef)(pointer(bodyOf(slot) + fetchedHeadBytes)) = hot.BounceRef{Index: index}
	answered(d, peer, ring, slot, pos)
	return true
}

// answered publishes an answer, and finds whether its receiver sleeps.
func answered(d *hot.Delivery, peer *hot.Peer, ring *mpsc.Ring, slot *hot.Slot, pos uint64) {
	ring.Publish(unsafe.Pointer(slot), peer.Owner, pos)
	if sleeps(peer) {
		d.Wake, d.Peer = 1, peer.Peer
	}
}
