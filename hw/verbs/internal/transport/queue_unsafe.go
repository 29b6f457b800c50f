package transport

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
)

// States of [SendQueue].Run.
const (
	QueueStopped uint32 = iota // no thread posts: not connected
	QueueIdle                  // a thread that has something to post may take it
	QueueBusy                  // a thread posts
)

// QueueClosed in [SendQueue].Tail says that no place may be claimed any more.
const QueueClosed = 1 << 63

// QueueReserve is the number of places that only control operations get.
const QueueReserve = 4

// SlotBytes is the size of a place's slot, in bytes: what an operation may copy.
const SlotBytes = 128

// MaxShort is the most bytes of head and payload of a message in a slot.
const MaxShort = SlotBytes - HeaderBytes

// Bits of a transport's Calls.
const (
	CallGo   = 1 << iota // Progress has something to do
	CallPost             // and something is ready that found no room in a completion queue
)

// Place is what is known of an operation beside its work request. Filled by the thread that claimed the place, before
// Ready is stored; read by the holder of Run, then by the lease holder.
type Place struct {
	// Ready is the position plus one when it may be posted. Stored by the thread that claimed the place (sequentially
	// consistent, before it tries Run), read by the holder of Run.
	Ready  atomic.Uint64
	Signal uint8 // 1: it writes a completion
	Weight uint8 // toward the next signaled operation
	Plain  uint8 // 1: a message in its slot; no caller waits for its end, and nothing is to be given back then
	Joined uint8 // operations before it that go in one request with it; by the holder of Run
	Bounce int32 // buffer to be freed, -1: none
}

// SendCQ is a completion queue for what is posted. An operation is posted only when its completion has a place, because
// a queue pair that breaks completes all its operations. It lies off the Go heap, or something keeps it alive.
type SendCQ struct {
	// Used is how many operations are posted and have not ended: by threads that post and the lease holder,
	// sequentially consistent.
	Used atomic.Int64
	Size int64 // immutable
	// signaled counts completions that were asked for and have not come: threads that post add, the thread that polls
	// takes away those that say success. After a queue pair has failed it stays too high.
	signaled atomic.Int64
	// calls is the address of the transport's Calls, 0 without one: immutable. A thread that has found no room sets
	// CallPost there after it has given Run back, and then reads Used once more. The lease holder takes from
	// Used before it arms, and reads Calls behind that, before it sleeps: one of both sees the other.
	calls uintptr
	_     [32]byte
}

// SendQueue is a queue pair's work requests on their way to it. Tail counts claimed places, Posted those that the queue
// pair has, Head those that have ended: Head <= Posted <= Tail <= Head + depth. Positions never wrap; a place is
// position & Mask. It lies in memory of the caller's.
type SendQueue struct {
	Tail   atomic.Uint64 // claimed by compare-and-swap by any thread, sequentially consistent
	_      [56]byte
	Head   atomic.Uint64 // stored by the lease holder, read by the thread that claims; sequentially consistent
	Run    atomic.Uint32 // Queue*: taken by compare-and-swap, given back by store; sequentially consistent
	Broken atomic.Uint32 // 1: the queue pair refused a post; by the holder of Run, read by any thread
	// GatherMax is the most local pieces of a request of several operations (gather.go), at most ibv.MaxGather, 0: none
	// is; changed while no thread posts.
	GatherMax uint32
	// GatherReads is the most of one that reads, if that is less than GatherMax; changed while no thread posts.
	GatherReads uint32
	// apart is the position before which operations go alone. By the thread that has stopped the queue, read by the
	// holder of Run.
	apart uint64
	_     [32]byte
	// immutable
	Mask      uint64
	ID        uint64 // of its completions: class << 62 | peer << 40
	ops       *ibv.Op
	places    *Place
	slots     *byte // registered: SlotBytes of each place
	cq        *SendCQ
	LKey      uint32
	JoinBytes uint32 // the most that goes in one operation of several messages; 0: none does
	// by the holder of Run, or the thread that has stopped the queue
	eagerAddr  uint64 // of the ring that the peer has given (eager.go), 0: none
	Posted     uint64 // other threads read it to see whether all is posted
	qp         ibv.Handle
	Inline     uint32        // bytes
	Gen        uint32        // of the queue pair, 8 bits: completions of older ones are ignored
	Weight     int64         // since the last signaled operation
	lastSend   uint64        // position after the last message. By the holder of Run (release), read by the service
	LastSignal atomic.Uint64 // position after the last signaled operation. By the holder of Run, read by any thread
	eagerKey   uint32
	eagerOn    uint32 // a message was sent by this queue pair
	eagerSent  uint32 // messages written into the ring. By the holder of Run, read by the lease holder; atomic
	// eagerTaken is how many of those the peer has taken. By the lease holder, read by the holder of Run; atomic.
	eagerTaken uint32
}

// Bytes of the parts of a queue's memory.
const (
	queueBytes = int(unsafe.Sizeof(SendQueue{}))
	placeBytes = int(unsafe.Sizeof(Place{}))
)

// The parts lie on lines of their own.
var (
	_ [0]struct{} = [unsafe.Sizeof(SendQueue{}) % 64]struct{}{}
	_ [0]struct{} = [unsafe.Sizeof(Peer{}) % 64]struct{}{}
	_ [64]byte    = [unsafe.Sizeof(SendCQ{})]byte{}
)

// BlockBytes is the memory of a queue of depth places, and of the [Peer] that may
// have it.
func BlockBytes(depth int) int {
	return queueBytes + peerBytes + depth*(placeBytes+ibv.OpBytes+SlotBytes)
}

// SendQueueAt makes a stopped queue of depth places, a power of two, in
// [BlockBytes] of unused memory, off the Go heap. It returns its parts.
func SendQueueAt(memory []byte, depth int, lkey uint32) (*SendQueue, []Place, []ibv.Op, []byte) {
	q := (*SendQueue)(unsafe.Pointer(&memory[0]))
	clear(memory[:queueBytes])
	at := memory[queueBytes+peerBytes:]
	places := unsafe.Slice((*Place)(unsafe.Pointer(&at[0])), depth)
	clear(at[:depth*placeBytes])
	at = at[depth*placeBytes:]
	clear(at[:depth*ibv.OpBytes])
	ops := ibv.Ops(at, depth)
	slots := at[depth*ibv.OpBytes:][: depth*SlotBytes : depth*SlotBytes]
	q.Mask, q.LKey = uint64(depth-1), lkey
	q.places, q.ops, q.slots = &places[0], &ops[0], &slots[0]
	return q, places, ops, slots
}

// SetCQ names the completion queue, before the queue runs.
func (q *SendQueue) SetCQ(c *SendCQ) { q.cq = c }

// SetQP gives the stopped queue a queue pair.
func (q *SendQueue) SetQP(p *ibv.QP) { q.qp, q.Inline = p.Handle(), uint32(p.MaxInline) }

func (q *SendQueue) op(pos uint64) *ibv.Op {
	return (*ibv.Op)(unsafe.Add(unsafe.Pointer(q.ops), uintptr(pos&q.Mask)*ibv.OpBytes))
}

func (q *SendQueue) place(pos uint64) *Place {
	return (*Place)(unsafe.Add(unsafe.Pointer(q.places), uintptr(pos&q.Mask)*uintptr(placeBytes)))
}

// slot is the memory that belongs to a place.
func (q *SendQueue) slot(pos uint64) *[SlotBytes]byte {
	return (*[SlotBytes]byte)(unsafe.Add(unsafe.Pointer(q.slots), uintptr(pos&q.Mask)*SlotBytes))
}

// slots from a place to the end of the memory.
func (q *SendQueue) slotsFrom(pos uint64) []byte {
	at := uintptr(pos & q.Mask)
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(q.slots), at*SlotBytes)), (uintptr(q.Mask)+1-at)*SlotBytes)
}

// send makes the work request of a place one that sends the first n bytes of b, which lies in slots.
func (q *SendQueue) send(pos uint64, b *byte, n uint32) {
	op := q.op(pos)
	op.Opcode, op.Flags, op.Pieces = ibv.OpSend, 0, 1
	if n <= q.Inline {
		op.Flags = ibv.Inline
	}
	op.SGE[0] = ibv.SGE{Addr: uint64(uintptr(unsafe.Pointer(b))), Len: n, LKey: q.LKey}
}

// queueAt is a queue by its address.
func queueAt(address uint64) *SendQueue { return (*SendQueue)(at(uintptr(address))) }

func (q *SendQueue) address() uint64 { return uint64(uintptr(unsafe.Pointer(q))) }

// at turns an address into a pointer: of memory off the Go heap, or that something else keeps alive.
func at(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }
