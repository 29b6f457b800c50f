package ibv

// #cgo noescape weft_sendq_post
// #cgo nocallback weft_sendq_post
// #cgo noescape weft_sendq_part
// #cgo nocallback weft_sendq_part
// #include "sendq.h"
import "C"

import (
	"structs"
	"sync/atomic"
	"unsafe"
)

// States of [SendQueue].Run.
const (
	QueueStopped = C.WEFT_SENDQ_STOPPED // no thread posts: not connected
	QueueIdle    = C.WEFT_SENDQ_IDLE    // a thread that has something to post may take it
	QueueBusy    = C.WEFT_SENDQ_BUSY    // a thread posts
)

// QueueClosed in [SendQueue].Tail says that no place may be claimed any more.
const QueueClosed = C.WEFT_SENDQ_CLOSED

// QueueReserve is the number of places that only control operations get.
const QueueReserve = C.WEFT_SENDQ_RESERVE

// SlotBytes is the size of a place's slot, in bytes: what an operation may copy.
const SlotBytes = C.WEFT_SENDQ_SLOT

// Bits of a port's Calls.
const (
	CallGo   = C.WEFT_CALL_GO   // Go has something to do
	CallPost = C.WEFT_CALL_POST // and something is ready that found no room in a completion queue
)

// JoinMax is the most messages in one operation.
const JoinMax = C.WEFT_SENDQ_JOIN

// Place is what C knows of an operation (struct weft_place).
type Place struct {
	_      structs.HostLayout
	Ready  atomic.Uint64 // the position plus one when it may be posted
	Signal uint8         // 1: it writes a completion
	Weight uint8         // toward the next signaled operation
	Plain  uint8         // 1: a message in its slot; no caller waits for its end, and nothing is to be given back then
	Joined uint8         // messages before it that go in one operation with it; by the holder of Run
	Bounce int32         // buffer to be freed, -1: none
}

// SendCQ is a completion queue for what is posted (struct weft_send_cq).
type SendCQ struct {
	_        structs.HostLayout
	Used     atomic.Int64 // operations posted and not ended: by threads that post and the lease holder
	Size     int64        // immutable
	signaled atomic.Int64 // completions that were asked for and have not come
	// calls is the address of the port's, 0 without one; immutable.
	calls uintptr
	_     [32]byte
}

// SendQueue is a queue pair's work requests on their way to it (struct weft_sendq,
// where the fields are explained). It lies in memory of the caller's.
type SendQueue struct {
	_          structs.HostLayout
	Tail       atomic.Uint64
	_          [56]byte
	Head       atomic.Uint64
	Run        atomic.Uint32
	Broken     atomic.Uint32
	_          [48]byte
	Mask       uint64
	ID         uint64
	ops        uintptr
	places     uintptr
	slots      uintptr
	cq         uintptr
	LKey       uint32
	JoinBytes  uint32 // the most that goes in one operation of several messages; 0: none does
	eagerAddr  uint64
	Posted     uint64
	qp         uintptr
	Inline     uint32
	Gen        uint32
	Weight     int64
	LastSignal atomic.Uint64
	LastSend   atomic.Uint64
	eagerKey   uint32
	eagerOn    uint32
	eagerSent  atomic.Uint32
	eagerTaken atomic.Uint32
}

// The layouts agree, or this does not compile.
var (
	_ = [1]byte{}[unsafe.Sizeof(Place{})-C.sizeof_struct_weft_place]
	_ = [1]byte{}[unsafe.Offsetof(Place{}.Plain)-unsafe.Offsetof(C.struct_weft_place{}.plain)]
	_ = [1]byte{}[unsafe.Offsetof(Place{}.Joined)-unsafe.Offsetof(C.struct_weft_place{}.joined)]
	_ = [1]byte{}[unsafe.Offsetof(Place{}.Bounce)-unsafe.Offsetof(C.struct_weft_place{}.bounce)]
	_ = [1]byte{}[unsafe.Sizeof(SendCQ{})-C.sizeof_struct_weft_send_cq]
	_ = [1]byte{}[unsafe.Offsetof(SendCQ{}.calls)-unsafe.Offsetof(C.struct_weft_send_cq{}.calls)]
	_ = [1]byte{}[unsafe.Sizeof(SendQueue{})-C.sizeof_struct_weft_sendq]
	_ = [1]byte{}[unsafe.Offsetof(SendQueue{}.Broken)-unsafe.Offsetof(C.struct_weft_sendq{}.broken)]
	_ = [1]byte{}[unsafe.Offsetof(SendQueue{}.Mask)-unsafe.Offsetof(C.struct_weft_sendq{}.mask)]
	_ = [1]byte{}[unsafe.Offsetof(SendQueue{}.cq)-unsafe.Offsetof(C.struct_weft_sendq{}.cq)]
	_ = [1]byte{}[unsafe.Offsetof(SendQueue{}.JoinBytes)-unsafe.Offsetof(C.struct_weft_sendq{}.join_bytes)]
	_ = [1]byte{}[unsafe.Offsetof(SendQueue{}.eagerAddr)-unsafe.Offsetof(C.struct_weft_sendq{}.eager_addr)]
	_ = [1]byte{}[unsafe.Offsetof(SendQueue{}.eagerTaken)-unsafe.Offsetof(C.struct_weft_sendq{}.eager_taken)]
	_ = [1]byte{}[unsafe.Offsetof(SendQueue{}.Posted)-unsafe.Offsetof(C.struct_weft_sendq{}.posted)]
	_ = [1]byte{}[unsafe.Offsetof(SendQueue{}.Gen)-unsafe.Offsetof(C.struct_weft_sendq{}.gen)]
	_ = [1]byte{}[unsafe.Offsetof(SendQueue{}.LastSend)-unsafe.Offsetof(C.struct_weft_sendq{}.last_send)]
)

// Bytes of the parts of a queue's memory.
const (
	queueBytes = C.sizeof_struct_weft_sendq
	placeBytes = C.sizeof_struct_weft_place
)

// BlockBytes is the memory of a queue of depth places, and of the [Peer] that may
// have it.
func BlockBytes(depth int) int { return queueBytes + peerBytes + depth*(placeBytes+OpBytes+SlotBytes) }

// SendQueueAt makes a stopped queue of depth places, a power of two, in
// [BlockBytes] of unused memory, off the Go heap or kept alive by the
// caller. It returns its parts.
func SendQueueAt(memory []byte, depth int, lkey uint32) (*SendQueue, []Place, []Op, []byte) {
	q := (*SendQueue)(unsafe.Pointer(&memory[0]))
	clear(memory[:queueBytes])
	at := memory[queueBytes+peerBytes:]
	places := unsafe.Slice((*Place)(unsafe.Pointer(&at[0])), depth)
	clear(at[:depth*placeBytes])
	at = at[depth*placeBytes:]
	ops := Ops(at, depth)
	slots := at[depth*OpBytes:][: depth*SlotBytes : depth*SlotBytes]
	q.Mask, q.LKey = uint64(depth-1), lkey
	q.places, q.ops = uintptr(unsafe.Pointer(&places[0])), uintptr(unsafe.Pointer(&ops[0]))
	q.slots = uintptr(unsafe.Pointer(&slots[0]))
	return q, places, ops, slots
}

// SetCQ names the completion queue, before the queue runs.
func (q *SendQueue) SetCQ(c *SendCQ) { q.cq = uintptr(unsafe.Pointer(c)) }

// SetQP gives the stopped queue a queue pair.
func (q *SendQueue) SetQP(p *QP) {
	q.qp, q.Inline = uintptr(unsafe.Pointer(p.p)), uint32(p.MaxInline)
}

// Post gives the queue pair what is ready, unless another thread is at it: that
// thread checks again after it has given Run back. True: nothing stays that the queue
// pair could take.
func (q *SendQueue) Post() bool {
	if run := q.Run.Load(); run != QueueIdle {
		return run == QueueBusy
	}
	return bool(C.weft_sendq_post((*C.struct_weft_sendq)(unsafe.Pointer(q))))
}

// Part gives each message that goes in one operation with others, and has not ended, its own again, and
// has those sent that would be written into a ring. The queue is stopped.
func (q *SendQueue) Part() { C.weft_sendq_part((*C.struct_weft_sendq)(unsafe.Pointer(q))) }
