package transport

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/internal/order"
)

// Eager rings. A receiver gives a peer a ring of slots in its memory, into which the peer writes short messages (RDMA
// WRITE) instead of sending them. That spares the receiver a completion and a receive buffer, but wakes no thread: the
// lease holder must poll. A peer that has written as many messages as there are slots sends until it hears that some
// were taken: of the index that messages carry the upper bits count those that their sender has taken.
//
// In its slot a message is followed, at the next multiple of 8 bytes, by what comes before it in order (the position
// after the message that the sender sent or wrote before, as the header's) and by a sum, 4 bytes each: a message whose
// bytes have not all come is not there yet, whatever the order in which the device writes them.

// Numbers and sizes of eager rings.
const (
	Rings         = 8 // of an interface: so many peers may have one
	RingSlots     = 16
	RingSlotBytes = 128
	RingBytes     = RingSlots * RingSlotBytes
	RingEndBytes  = 8
)

// Ring is where a peer may write short messages: its address there, its key, and
// how many messages were taken from it before, from which the slot of the next follows. The
// zero value is none.
type Ring struct {
	Addr  uint64
	RKey  uint32
	Taken uint32
}

// sum distinguishes a slot that has all its bytes from one that has some of a former message. Each step is invertible,
// so any one word that differs makes a difference; the shift takes it to the lower bits, where later multiplications
// spread it again. b is of words of 8 bytes.
func sum(b []byte, before uint32) uint32 {
	s := uint64(before)
	for ; len(b) >= 8; b = b[8:] {
		s = (s ^ binary.LittleEndian.Uint64(b)) * 0x9e3779b97f4a7c15
		s ^= s >> 32
	}
	return uint32(s)
}

// turnEager has the message at pos, which is about to be posted alone, written into the ring that the peer has given,
// if a slot is free and the message fits. The caller holds Run.
func (q *SendQueue) turnEager(pos uint64) {
	op := q.op(pos)
	n := aligned(op.SGE[0].Len)
	out := (q.eagerSent - atomic.LoadUint32(&q.eagerTaken)) & countMask
	if q.eagerOn == 0 || q.place(pos).Plain == 0 || n+RingEndBytes > RingSlotBytes || out >= RingSlots {
		return
	}
	b := q.slot(pos)
	clear(b[op.SGE[0].Len:n])
	before := uint32(q.lastSend)
	binary.LittleEndian.PutUint64(b[n:], uint64(before)|uint64(sum(b[:n], before))<<32)
	op.Opcode, op.Flags = ibv.OpWrite, 0
	if n+RingEndBytes <= q.Inline {
		op.Flags = ibv.Inline
	}
	op.SGE[0].Len = n + RingEndBytes
	op.RemoteAddr = q.eagerAddr + uint64(q.eagerSent%RingSlots)*RingSlotBytes
	op.RKey = q.eagerKey
	order.Store32(&q.eagerSent, q.eagerSent+1)
}

// UseRing has short messages written into the ring that a peer gives, from the second on. The queue is stopped.
func (q *SendQueue) UseRing(r Ring) {
	q.eagerAddr, q.eagerKey, q.eagerOn = r.Addr, r.RKey, 0
	order.Store32(&q.eagerSent, r.Taken)
	order.Store32(&q.eagerTaken, r.Taken)
}

// Heard takes in the count in the index of a peer's message: so many slots of its ring are free again. Lease.
func (q *SendQueue) Heard(index uint32) {
	taken := q.eagerTaken
	more := (index>>IndexBits - taken) & countMask
	out := (atomic.LoadUint32(&q.eagerSent) - taken) & countMask
	if more != 0 && more <= out { // else what it says is older, or false
		order.Store32(&q.eagerTaken, taken+more)
	}
}

// readRing copies the next message of a peer out of its ring and returns the copy, valid until the next call; nil: it
// has not come, or not as a whole. What the message ends with is read before the rest: where devices write in order, as
// most do, all of it has come then. What lies in the ring may change at any time. Lease.
func (p *Peer) readRing(to *[RingSlotBytes]byte) []byte {
	if !p.written() {
		return nil
	}
	slot := p.ringSlot()
	n := bytesOf(slot[:])
	if n > RingSlotBytes-RingEndBytes {
		return nil
	}
	at := aligned(uint32(n))
	end := loadWord(slot, at)
	before := uint32(end)
	if before != p.LastSeq {
		return nil
	}
	*to = *slot // from here on the copy counts
	if bytesOf(to[:]) != n || binary.LittleEndian.Uint64(to[at:]) != end || uint32(end>>32) != sum(to[:at], before) {
		return nil
	}
	return to[:n]
}

// There reports whether the next message of the peer, in the order of all its messages, lies in its ring. Lease.
func (p *Peer) There() bool {
	var to [RingSlotBytes]byte
	return p.readRing(&to) != nil
}

// takeSlot frees the slot of the message that readRing has found. Lease.
func (p *Peer) takeSlot() {
	p.clearWord()
	order.Store32(&p.taken, p.taken+1) // last: it gives the slot back to the peer
}

// Taken is how many messages were taken from the peer's ring.
func (p *Peer) Taken() uint32 { return atomic.LoadUint32(&p.taken) }

// MessageIndex is what a message to the peer carries: its number for us, and the count of what was taken.
func (p *Peer) MessageIndex() uint32 { return p.Index.Load() | p.Taken()<<IndexBits }
