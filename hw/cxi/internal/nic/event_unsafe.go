package nic

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/order"
)

// bytesOf views a command.
func bytesOf(w *[32]uint64) *[256]byte { return (*[256]byte)(unsafe.Pointer(w)) }

// firstEvent is where events begin; the status is before it.
const firstEvent = wire.EqStatusSize

// Event is an event where it lies in its queue: one to eight words, valid until Done.
type Event struct{ w *[8]uint64 }

// There reports whether there is an event.
func (e Event) There() bool { return e.w != nil }

// Type is wire.EventPut, ….
func (e Event) Type() uint32 {
	return uint32(e.w[wire.EventTargetLongEventTypeWord] >> wire.EventTargetLongEventTypeShift & wire.EventTargetLongEventTypeMask)
}

// words is its length.
func (e Event) words() uint32 {
	size := uint32(e.w[wire.EventTargetLongEventSizeWord] >> wire.EventTargetLongEventSizeShift & wire.EventTargetLongEventSizeMask)
	return 1 << size & 0xe // 2, 4 or 8; 0: none
}

// IsLong reports whether it has 64 bytes, and so all that events at a target say.
func (e Event) IsLong() bool { return e.words() == 8 }

// Code is its return code, wire.RcOk, ….
func (e Event) Code() uint32 {
	return uint32(e.w[e.words()-1] >> wire.EventTargetLongReturnCodeShift & wire.EventTargetLongReturnCodeMask)
}

// UserPtr is the initiator's cookie of an acknowledgement or reply.
func (e Event) UserPtr() uint64 { return e.w[0] }

// HeaderData, MatchBits, Initiator, BufferID, Length, Start, Used and VNI are of an event of 64 bytes at a target.
func (e Event) HeaderData() uint64 { return e.w[wire.EventTargetLongHeaderDataWord] }

// MatchBits are those of the command.
func (e Event) MatchBits() uint64 { return e.w[wire.EventTargetLongMatchBitsWord] }

// Initiator is the MatchID of the sender.
func (e Event) Initiator() uint32 {
	return uint32(e.w[wire.EventTargetLongInitiatorWord] >> wire.EventTargetLongInitiatorShift)
}

// BufferID is the ID of the list entry.
func (e Event) BufferID() uint16 {
	return uint16(e.w[wire.EventTargetLongBufferIdWord] >> wire.EventTargetLongBufferIdShift)
}

// Length is how many bytes were written.
func (e Event) Length() uint32 {
	return uint32(e.w[wire.EventTargetLongMlengthWord] >> wire.EventTargetLongMlengthShift)
}

// Wanted is how many bytes were sent.
func (e Event) Wanted() uint32 {
	return uint32(e.w[wire.EventTargetLongRlengthWord] >> wire.EventTargetLongRlengthShift)
}

// Start is the IOVA where they were written.
func (e Event) Start() uint64 {
	return e.w[wire.EventTargetLongStartWord] & wire.EventTargetLongStartMask
}

// Last reports whether the entry has gone from its list with this.
func (e Event) Last() bool {
	return e.w[wire.EventTargetLongAutoUnlinkedWord]>>wire.EventTargetLongAutoUnlinkedShift&1 != 0
}

// PtlTE is the number of the portal table entry.
func (e Event) PtlTE() uint32 {
	return uint32(e.w[wire.EventTargetLongPtlteIndexWord] >> wire.EventTargetLongPtlteIndexShift & wire.EventTargetLongPtlteIndexMask)
}

// State is the state in an event of wire.EventStateChange.
func (e Event) State() uint32 { return e.Initiator() & wire.StateChangePtlteStateMask }

// Automatic reports whether the NIC has changed the state by itself, and why: wire.ReasonFcEqFull, ….
func (e Event) Automatic() (reason uint32, ok bool) {
	v := e.Initiator()
	return v >> wire.StateChangeScReasonShift & wire.StateChangeScReasonMask, v>>wire.StateChangeScNicAutoShift&1 != 0
}

// VNI is the virtual network over which a message came.
func (e Event) VNI() uint16 {
	return uint16(e.w[wire.EventTargetLongVniWord] >> wire.EventTargetLongVniShift)
}

// Rendezvous reports whether a message is one of a rendezvous.
func (e Event) Rendezvous() bool {
	return e.w[wire.EventTargetLongRendezvousWord]>>wire.EventTargetLongRendezvousShift&1 != 0
}

// RendezvousID are the lower eight bits of its number.
func (e Event) RendezvousID() uint32 {
	return uint32(e.w[wire.EventTargetLongRendezvousIdWord] >> wire.EventTargetLongRendezvousIdShift &
		wire.EventTargetLongRendezvousIdMask)
}

// GetIssued reports in an event of wire.EventRendezvous whether the NIC gets the data.
func (e Event) GetIssued() bool {
	return e.w[wire.EventTargetLongGetIssuedWord]>>wire.EventTargetLongGetIssuedShift&1 != 0
}

// Offset is where the data is at the sender, in an event of wire.EventRendezvous.
func (e Event) Offset() uint64 {
	return e.w[wire.EventTargetLongRemoteOffsetWord] & wire.EventTargetLongRemoteOffsetMask
}

// AnswerLength is the number of bytes transferred, in an acknowledgement or reply of 16 bytes.
func (e Event) AnswerLength() uint32 {
	return uint32(e.w[wire.EventInitiatorMlengthWord] >> wire.EventInitiatorMlengthShift)
}

// AnswerList is the list that took a message, in its acknowledgement.
func (e Event) AnswerList() uint32 {
	return uint32(e.w[wire.EventInitiatorPtlListWord] >> wire.EventInitiatorPtlListShift &
		wire.EventInitiatorPtlListMask)
}

// AnswerRendezvous reports whether a reply is to a get that the NIC has made for a rendezvous. Its pointer then says
// what for.
func (e Event) AnswerRendezvous() bool {
	return e.w[wire.EventInitiatorRendezvousWord]>>wire.EventInitiatorRendezvousShift&1 != 0
}

// Fetched is what the pointer in such a reply says: the sender's NIC and PID, the lower eight bits of the number, and
// the list entry.
func (e Event) Fetched() (nid, pid, id uint32, buffer uint16) {
	v := e.UserPtr()
	return uint32(v >> wire.RendezvousUserPtrSrcNidShift & wire.RendezvousUserPtrSrcNidMask),
		uint32(v >> wire.RendezvousUserPtrSrcPidShift & wire.RendezvousUserPtrSrcPidMask),
		uint32(v >> wire.RendezvousUserPtrRendezvousIdShift & wire.RendezvousUserPtrRendezvousIdMask),
		uint16(v >> wire.RendezvousUserPtrBufferIdShift)
}

// Kept is a copy of an event of 64 bytes.
type Kept [8]uint64

// Keep copies the event, which has 64 bytes.
func (e Event) Keep() Kept { return *e.w }

// Event is the event that was copied.
func (k *Kept) Event() Event { return Event{(*[8]uint64)(k)} }

// Slot is where a command that is refused lies in its queue, in units of 64 bytes.
func (e Event) Slot() uint32 {
	return uint32(e.w[wire.EventCommandFailureFailLocWord] >> wire.EventCommandFailureFailLocShift & wire.EventCommandFailureFailLocMask)
}

// Command is the first byte of a command that is refused.
func (e Event) Command() uint64 {
	return e.w[wire.EventCommandFailureFailCommandWord] >> wire.EventCommandFailureFailCommandShift &
		wire.EventCommandFailureFailCommandMask
}

// EventQueue is an event queue: a ring of events of 16, 32 or 64 bytes, and the word by which the NIC learns how far
// it has been read. One thread at a time reads it; Interrupts and Waiting may be called beside it.
type EventQueue struct {
	base unsafe.Pointer
	word unsafe.Pointer
	size uint32 // bytes
	off  uint32 // of the next event
	lap  uint32 // bytes read since the NIC got the read pointer
	most uint32 // of lap
	read uint64 // bytes read in all

	// lock is 1 while a thread writes the word. Taken by compare-and-swap (acquire), given back by store (release).
	lock  uint32
	alone order.Word // of a thread that needs not take the lock. Set before the queue is used by several
	given uint64     // read, as the NIC knows it; under lock
	quiet uint64     // bits of the word that keep interrupts off; under lock
	drops uint64     // bit of the word that acknowledges what the NIC has dropped; under lock
	// overrun is 1 if events were dropped since ClearOverran. Stored by the reader (release), read by Overran (atomic).
	overrun uint32
	// seen is read when the reader has last found the queue empty, or by Pause. Stored by it (release), read by
	// Interrupts (atomic).
	seen uint64
	// next is the address of the second word of the event at off, for Waiting and Unread. Stored by the reader behind
	// what it clears (release), read by them (atomic).
	next uint64
}

const intsOff = 1<<wire.EqStateEventIntDisableShift | 1<<wire.EqStateStatusIntDisableShift

// Init makes a queue of size bytes of zeroed memory at base, and the word at word. Interrupts are off.
func (q *EventQueue) Init(base, word unsafe.Pointer, size uint32) {
	q.base, q.word, q.size, q.off, q.quiet = base, word, size, firstEvent, intsOff
	q.most = size / 4
	q.point()
	Bell(q.Due())
	q.unlock()
}

// Every has the NIC get what was read back by so many bytes at most, in place of quarters of the queue. The queue is
// not in use yet.
func (q *EventQueue) Every(bytes uint32) { q.most = min(q.most, bytes) }

// Alone has a thread that is alone, by a word, write the word to the NIC without the lock.
func (q *EventQueue) Alone(w order.Word) { q.alone = w }

// Peek returns the next event if there is one. It passes by what only fills the ring.
func (q *EventQueue) Peek() Event {
	for {
		e := q.PeekAny()
		if !e.There() || e.Type() != wire.EventNull {
			return e
		}
		q.Done(e)
	}
}

// PeekAny is Peek that returns also what only fills the ring (wire.EventNull).
func (q *EventQueue) PeekAny() Event {
	e := Event{(*[8]uint64)(unsafe.Add(q.base, q.off))}
	// The word with the size is the first of an event that is written, and the last word is the last to be written.
	n := atomic.LoadUint64(&e.w[1]) >> wire.EventTargetLongEventSizeShift & wire.EventTargetLongEventSizeMask
	if n != 0 {
		last := atomic.LoadUint64(&e.w[1<<n-1])
		if last>>wire.EventTargetLongReturnCodeShift&wire.EventTargetLongReturnCodeMask != 0 {
			return e
		}
	}
	if q.seen != q.read {
		q.Pause()
	}
	return Event{}
}

// Done frees the event of Peek.
func (q *EventQueue) Done(e Event) {
	if q.Free(e) {
		Bell(q.Due())
		q.unlock()
	}
}

// Free is Done without the write to the NIC: whether it is time for that, by Due.
func (q *EventQueue) Free(e Event) bool {
	n := e.words()
	switch n { // each without a loop
	case 2:
		*(*[2]uint64)(e.w[:2]) = [2]uint64{}
	case 4:
		*(*[4]uint64)(e.w[:4]) = [4]uint64{}
	default:
		*e.w = [8]uint64{}
	}
	q.lap += 8 * n
	q.read += uint64(8 * n)
	if q.off += 8 * n; q.off >= q.size {
		q.off = firstEvent
	}
	q.point()
	return q.lap >= q.most
}

// Return has the NIC know of all events that were freed, so that it has their room.
func (q *EventQueue) Return() {
	if q.lap > 0 {
		Bell(q.Due())
		q.unlock()
	}
}

// Due returns the doorbell that says how far the queue has been read. The caller rings it, and then gives Lock back.
//
// Events that the NIC has dropped are noticed here, and acknowledged with that: it drops some only if all that it wrote
// was unread but for less than a quarter of the queue, which Done and Free return one by one.
func (q *EventQueue) Due() (word unsafe.Pointer, value uint64) {
	q.lap = 0
	quiet := q.set()
	q.given = q.read
	if q.Dropped() {
		q.drops ^= 1 << wire.EqStateEventDropSeqNoShift
		order.Store32(&q.overrun, 1)
	}
	return q.word, q.place(q.read)/64 | quiet | q.drops
}

// Overran reports whether the NIC had to drop events since ClearOverran, as the queue was full.
func (q *EventQueue) Overran() bool { return atomic.LoadUint32(&q.overrun) != 0 }

// ClearOverran has Overran say no until the next time. The caller is the reader.
func (q *EventQueue) ClearOverran() { order.Store32(&q.overrun, 0) }

// Lock is what Due leaves locked: 0 gives it back.
func (q *EventQueue) Lock() *uint32 { return &q.lock }

func (q *EventQueue) unlock() { order.Store32(&q.lock, 0) }

// set takes the lock and returns the bits of the word.
func (q *EventQueue) set() uint64 {
	for !q.alone.Alone() && !atomic.CompareAndSwapUint32(&q.lock, 0, 1) {
	}
	return q.quiet
}

// write stores the word and gives the lock back.
func (q *EventQueue) write(read, quiet uint64) {
	q.given, q.quiet = read, quiet
	Bell(q.word, q.place(read)/64|quiet|q.drops)
	q.unlock()
}

// Interrupts has the NIC raise the queue's wait object when events come, or not.
func (q *EventQueue) Interrupts(on bool) {
	quiet := uint64(intsOff)
	if on {
		quiet = 0
	}
	if q.set() == quiet {
		q.unlock()
		return
	}
	q.write(max(q.given, atomic.LoadUint64(&q.seen)), quiet)
}

// place is where the event behind so many bytes is.
func (q *EventQueue) place(read uint64) uint64 { return firstEvent + read%uint64(q.size-firstEvent) }

// Pause says to Interrupts how far the reader has come, if there may be something there.
func (q *EventQueue) Pause() { order.Store64(&q.seen, q.read) }

// Waiting reports whether there is something that was not read.
func (q *EventQueue) Waiting() bool {
	word := (*uint64)(q.memory(atomic.LoadUint64(&q.next)))
	return atomic.LoadUint64(word)>>wire.EventTargetLongEventSizeShift&wire.EventTargetLongEventSizeMask != 0
}

// point stores the address of the second word of the event at off.
func (q *EventQueue) point() { order.Store64(&q.next, uint64(uintptr(q.base))+uint64(q.off)+8) }

// memory is a place of the queue's memory by its address.
func (q *EventQueue) memory(address uint64) unsafe.Pointer {
	return unsafe.Add(q.base, uintptr(address)-uintptr(q.base))
}

// Unread is how many blocks of 64 bytes hold something that was not read, at most so many. Any thread may call it; of
// what is read or comes meanwhile it says what it finds.
func (q *EventQueue) Unread(most int) (n int) {
	off := uint32(atomic.LoadUint64(&q.next) - 8 - uint64(uintptr(q.base)))
	for ; n < most; n++ {
		w := (*[2]uint64)(unsafe.Add(q.base, off))
		if atomic.LoadUint64(&w[1])>>wire.EventTargetLongEventSizeShift&wire.EventTargetLongEventSizeMask == 0 {
			break
		}
		if off = off&^63 + 64; off >= q.size {
			off = firstEvent
		}
	}
	return n
}

// Next is what Waiting reads: where the address of the next event's second word is, and the bits of that word of which
// one is set where there is an event.
func (q *EventQueue) Next() (next *uint64, event uint64) {
	return &q.next, wire.EventTargetLongEventSizeMask << wire.EventTargetLongEventSizeShift
}

// Dropped reports whether the NIC had to drop events because the queue was full, and that is not acknowledged.
func (q *EventQueue) Dropped() bool {
	w := (*uint64)(unsafe.Add(q.base, 8*wire.EqStatusUnackdDroppedEventWord))
	status := atomic.LoadUint64(w)
	return status>>wire.EqStatusUnackdDroppedEventShift&1 != 0 &&
		status>>wire.EqStatusEventDropSeqNoShift&1 != q.drops>>wire.EqStateEventDropSeqNoShift
}
