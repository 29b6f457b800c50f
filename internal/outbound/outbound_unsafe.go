package outbound

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/mpsc"
)

// FreeWord is where the only sender of an inbound ring keeps the position up to which slots are free; that sender reads
// and writes it, relaxed. The owner stores 0 when the ring is about to get another sender.
func FreeWord(r *mpsc.Ring) *uint64 { return &headerOf(r).Free }

// headerOf is what stands before the slots of an inbound ring.
func headerOf(r *mpsc.Ring) *hot.RxRing {
	return (*hot.RxRing)(unsafe.Add(unsafe.Pointer(r.TailWord()), -int(unsafe.Offsetof(hot.RxRing{}.Tail))))
}

// Room reports whether the ring has room now. For the only sender of a ring [Claim] succeeds after true; for others it
// may not, because another sender is faster.
func Room(r *mpsc.Ring, exclusive bool) bool { return exclusive && ahead(r) || r.HasRoom() }

// Sure reports whether the next [Claim] will succeed. Of a ring with several senders it is always false.
func Sure(r *mpsc.Ring, exclusive bool) bool { return exclusive && ahead(r) }

// Claim takes the next free slot for owner, the sender's number at the receiver plus one; ok is false when the ring is
// full. exclusive: no other thread sends to the ring. The caller writes the slot behind its sequence word and publishes
// it with pos.
func Claim(r *mpsc.Ring, owner uint32, exclusive bool) (slot *hot.Slot, pos uint64, ok bool) {
	if exclusive && ahead(r) {
		pos = r.Tail()
		return (*hot.Slot)(r.Take(owner, pos)), pos, true
	}
	at, pos, ok := r.Claim(owner, exclusive)
	return (*hot.Slot)(at), pos, ok
}

// ahead reports whether the next slot is surely free, and takes down up to where slots are. False also for a ring of
// which less than a quarter is free. The caller is the ring's only sender. A peer that overwrites the words loses what
// is sent to it, nothing else.
func ahead(r *mpsc.Ring) bool {
	h := headerOf(r)
	return int64(atomic.LoadUint64(&h.Free)-atomic.LoadUint64(&h.Tail)) > 0 || further(r)
}

// further is ahead where the next slot is not known to be free.
//
//go:noinline
func further(r *mpsc.Ring) bool {
	word, pos, quarter := FreeWord(r), r.Tail(), r.Slots()/4
	if !r.Free(pos) || !r.Free(pos+quarter) {
		return false
	}
	order.Store64(word, pos+quarter+1)
	return true
}

// Put writes what a slot says of its message: the id, hot.SlotBounce or 0, bytes of the head and of the payload, and
// the header. Head and payload, or the number of the bounce buffer, go to the body.
func Put(slot *hot.Slot, id uint8, flags uint8, head, payload int, header uint64) {
	// One store: stores to a slot wait in the processor's short store buffer until the line has come from the peer.
	*(*uint64)(unsafe.Pointer(&slot.AMID)) = uint64(id) | uint64(flags)<<8 | uint64(uint16(head))<<16 | uint64(
		uint32(payload))<<32
	slot.Header = header
}

// Overtakes reports whether a copy now would be before a write or atomic operation that was posted by a peer's line and
// that the peer, whose ring r is, has not taken in.
func Overtakes(line *hot.Peer, r *mpsc.Ring) bool {
	put := atomic.LoadUint64(&line.Put)
	return put != 0 && !r.Released(put-1)
}

// FreeBounce finds a free bounce buffer of a stripe whose lease the caller holds, and its number in the segment; nil:
// all are in flight. It is not marked: it stays free until its state is stored.
func FreeBounce(s *hot.Stripe) (b *hot.Bounce, index uint32) {
	for range s.BounceCount {
		n := s.BounceNext
		if s.BounceNext = n + 1; s.BounceNext >= s.BounceCount {
			s.BounceNext = 0
		}
		b = bounceAt(s, n)
		if atomic.LoadUint32(&b.State) == 0 { // acquire ↔ the receiver's store of 0: it has read the payload
			return b, s.BounceFirst + n
		}
	}
	return nil, 0
}

// NextBounce is the address of the buffer that FreeBounce tries next. Its receiver wrote there last, so fetching the
// line ahead saves time.
func NextBounce(s *hot.Stripe) uintptr {
	return s.Bounce + uintptr(s.BounceNext)*uintptr(s.BounceStride)
}

// Mark marks a buffer that is filled as in flight: owner is the sender's number at the receiver, plus one, peer the
// receiver's number at the sender. The slot that names the buffer is published after that. Release ↔ the load by
// which the sender finds the buffers of a dead peer to free them.
func Mark(b *hot.Bounce, owner, peer uint32) {
	atomic.StoreUint32(&b.Peer, peer)
	order.Store32(&b.State, owner)
}

// Payload is the address of a bounce buffer's payload.
func Payload(b *hot.Bounce) uintptr { return uintptr(unsafe.Pointer(b)) + unsafe.Sizeof(*b) }

// bounceAt views buffer n of a stripe. The detour through memory shows vet that this is no arithmetic on a Go pointer.
func bounceAt(s *hot.Stripe, n uint32) *hot.Bounce {
	at := s.Bounce + uintptr(n)*uintptr(s.BounceStride)
	return *(**hot.Bounce)(unsafe.Pointer(&at))
}
