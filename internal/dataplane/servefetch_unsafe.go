package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/outbound"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
	"github.com/weft-fabric/weft/provider/atomics"
)

// The target's side of atomic operations, which package atomics performs as it does for the runtime, and of reads that
// are messages.

// serveAtomic performs an operation.
func serveAtomic(
	d *hot.Delivery, ep *hot.EP, src *hot.Source, addr uint64, owner uint32, slot *hot.Slot, m message,
) bool {
	if m.head() != uint32(atomicHeadBytes) {
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
		n == 0 || n > atomics.MaxBytes || head.Ends != hot.EndsOperation || head.At != 0 ||
		uint64(m.length()) != want ||
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
	slots := answers(peer)
	if slots == 0 {
		return false
	}
	view := ringOf(peer, slots)
	ring := mpsc.View(&view)
	var before uint64
	first := job.Count == 1 && n <= 8 && outbound.Sure(ring, peer.Exclusive != 0)
	if first {
		job.Result = unsafe.Pointer(&before)
		job.Perform()
	}
	slot, pos, b, index, ok := claimAnswer(ep, peer, ring, n)
	if !ok {
		return false
	}
	to := answerAt(slot, b)
	if first {
		*(*uint64)(pointer(to)) = before // as much of it as the operation has
	} else {
		job.Result = pointer(to)
		job.Perform()
	}
	putAnswer(peer, slot, b, index, request, 0, n)
	answered(d, peer, ring, slot, pos)
	return true
}

// serveRead answers a read that fits one message.
func serveRead(d *hot.Delivery, ep *hot.EP, src *hot.Source, addr uint64, slot *hot.Slot, m message) bool {
	if m.head() != uint32(readHeadBytes) || m.length() != 0 || m.flags() != 0 {
		return false
	}
	head := *(*hot.ReadHead)(unsafe.Pointer(&slot.Body))
	if head.Request == 0 || head.Length == 0 || head.Length > uint64(ep.EagerMax) || head.At > 1<<62 ||
		head.Ends > hot.EndsShared {
		return false
	}
	from := regionAt(ep, head.Key, m.header, head.Length, hot.KeyRead)
	peer := back(ep, src, addr)
	slots := answers(peer)
	if from == 0 || slots == 0 {
		return false
	}
	view := ringOf(peer, slots)
	ring := mpsc.View(&view)
	to, pos, b, index, ok := claimAnswer(ep, peer, ring, head.Length)
	if !ok {
		return false
	}
	if b != nil {
		outbound.Fill(answering(ep), b, from, uintptr(head.Length))
	} else {
		move(answerAt(to, nil), from, uintptr(head.Length))
	}
	putAnswer(peer, to, b, index, head.Request, head.At, head.Length)
	answered(d, peer, ring, to, pos)
	stat(ep, stats.RxServedReads, 1)
	return true
}

// answers returns the slots of the ring of a peer that is answered; 0: the runtime answers. peer may be nil.
func answers(peer *hot.Peer) uintptr {
	if peer == nil {
		return 0
	}
	slots := atomic.LoadUintptr(&peer.Slots)
	if slots == 0 || atomic.LoadUint32((*uint32)(pointer(peer.RxState)))&hot.RxGone != 0 {
		return 0
	}
	return slots
}

// claimAnswer takes what an answer of n bytes needs: a slot, and for one that does not fit it a bounce buffer of the
// progress lease's holder, b. ok is false, and nothing is taken, where there is none.
func claimAnswer(ep *hot.EP, peer *hot.Peer, ring *mpsc.Ring, n uint64) (
	slot *hot.Slot, pos uint64, b *hot.Bounce, index uint32, ok bool,
) {
	if n > hot.SlotBody-fetchedHeadBytes {
		if n > uint64(ep.EagerMax) || !outbound.Room(ring, peer.Exclusive != 0) {
			return nil, 0, nil, 0, false
		}
		if b, index = outbound.FreeBounce(answering(ep)); b == nil {
			return nil, 0, nil, 0, false
		}
	}
	slot, pos, ok = outbound.Claim(ring, peer.Owner, peer.Exclusive != 0)
	return slot, pos, b, index, ok
}

// answering is the stripe of the progress lease's holder.
func answering(ep *hot.EP) *hot.Stripe { return stripeAt(ep, ep.StripeMask+1) }

// answerAt is where the bytes of an answer go.
func answerAt(slot *hot.Slot, b *hot.Bounce) uintptr {
	if b != nil {
		return outbound.Payload(b)
	}
	return bodyOf(slot) + fetchedHeadBytes
}

// putAnswer writes all but the bytes of an answer, n that belong at an offset of the operation. b is nil if they are in
// the slot.
func putAnswer(peer *hot.Peer, slot *hot.Slot, b *hot.Bounce, index uint32, request, offset, n uint64) {
	flags := uint8(0)
	if b != nil {
		flags = hot.SlotBounce
		outbound.Mark(b, peer.Owner, peer.Peer)
		*(*hot.BounceRef)(pointer(bodyOf(slot) + fetchedHeadBytes)) = hot.BounceRef{Index: index}
	}
	outbound.Put(slot, hot.AMReadData, flags, fetchedHeadBytes, int(n), request)
	*(*uint64)(unsafe.Pointer(&slot.Body)) = offset
}

// answered publishes an answer, and finds whether its receiver sleeps.
func answered(d *hot.Delivery, peer *hot.Peer, ring *mpsc.Ring, slot *hot.Slot, pos uint64) {
	ring.Publish(unsafe.Pointer(slot), peer.Owner, pos)
	if sleeps(peer) {
		d.Wake, d.Peer = 1, peer.Peer
	}
}
