package ibv

// #cgo noescape weft_eager_read
// #cgo nocallback weft_eager_read
// #cgo noescape weft_eager_there
// #cgo nocallback weft_eager_there
// #cgo noescape weft_eager_take
// #cgo nocallback weft_eager_take
// #cgo noescape weft_eager_heard
// #cgo nocallback weft_eager_heard
// #include "vport.h"
import "C"

import (
	"sync/atomic"
	"unsafe"
)

// Eager rings (eager.h): slots in a receiver's memory into which a peer writes short messages by RDMA. Here are the
// receiver's side (GiveRing to TakeSlot) and how the receiver gives slots back: a count of
// messages taken, in the upper bits of the index that each message carries.

// Numbers and sizes of eager rings.
const (
	Rings         = C.WEFT_EAGER_RINGS // of an interface: so many peers may have one
	RingSlots     = C.WEFT_EAGER_SLOTS
	RingSlotBytes = C.WEFT_EAGER_SLOT
	RingBytes     = RingSlots * RingSlotBytes
	RingEndBytes  = C.sizeof_struct_weft_eager_end
	IndexBits     = C.WEFT_INDEX_BITS // of the index in a message's header; above them is a count
	IndexMask     = C.WEFT_INDEX_MASK
)

// Ring is where a peer may write short messages: its address there, its key, and
// how many messages were taken from it before, from which the slot of the next follows. The
// zero value is none.
type Ring struct {
	Addr  uint64
	RKey  uint32
	Taken uint32
}

// GiveRing gives a peer ring number k, RingBytes of memory off the Go heap. One thread at a time gives and takes rings;
// no messages come from the peer yet.
func (p *VPort) GiveRing(k int, peer *Peer, memory []byte) {
	clear(memory)
	peer.ring = unsafe.Pointer(&memory[0])
	peer.ringAt = (*uint32)(peer.ring)
	p.rings[k].Store(uintptr(unsafe.Pointer(peer)))
	atomic.AddUint32(&p.Hot.Silent, 1)
}

// TakeRing takes ring k from its peer. The caller holds the lease, and is the one thread that gives and takes rings.
func (p *VPort) TakeRing(k int, peer *Peer) {
	p.rings[k].Store(0)
	peer.ring, peer.ringAt = nil, nil
	atomic.AddUint32(&p.Hot.Silent, ^uint32(0))
}

// ReadRing copies the next message of a peer out of its ring and returns the copy, valid until the next call; nil: it
// has not come, or not as a whole. The caller holds the lease, as for TakeSlot and There.
func (p *VPort) ReadRing(peer *Peer) []byte {
	if !peer.ready() {
		return nil
	}
	n := C.weft_eager_read((*C.struct_weft_vpeer)(unsafe.Pointer(peer)), (*C.uchar)(unsafe.Pointer(&p.copy[0])))
	if n == 0 {
		return nil
	}
	return p.copy[:n:n]
}

// ready reports whether something has come to the slot of the next message.
func (p *Peer) ready() bool {
	return p.ringAt != nil && atomic.LoadUint32(p.ringAt) != 0
}

// TakeSlot frees the slot of the message that ReadRing has found.
func (p *Peer) TakeSlot() { C.weft_eager_take((*C.struct_weft_vpeer)(unsafe.Pointer(p))) }

// Taken is how many messages were taken from the peer's ring.
func (p *Peer) Taken() uint32 { return p.taken.Load() }

// MessageIndex is what a message to the peer carries: its number for us, and the count of what was taken.
func (p *Peer) MessageIndex() uint32 { return p.Index.Load() | p.taken.Load()<<IndexBits }

// There reports whether the next message of the peer, in the order of all its messages, lies in its ring.
func (p *Peer) There() bool {
	return p.ready() && bool(C.weft_eager_there((*C.struct_weft_vpeer)(unsafe.Pointer(p))))
}

// UseRing has short messages written into the ring that a peer gives, from the second on. The queue is stopped.
func (q *SendQueue) UseRing(r Ring) {
	q.eagerAddr, q.eagerKey, q.eagerOn = r.Addr, r.RKey, 0
	q.eagerSent.Store(r.Taken)
	q.eagerTaken.Store(r.Taken)
}

// Heard takes in the count in the index of a peer's message: so many slots of its ring are free again. The caller holds
// the lease.
func (q *SendQueue) Heard(index uint32) {
	if (index>>IndexBits^q.eagerTaken.Load())&C.WEFT_COUNT_MASK != 0 {
		C.weft_eager_heard((*C.struct_weft_sendq)(unsafe.Pointer(q)), C.uint32_t(index))
	}
}
