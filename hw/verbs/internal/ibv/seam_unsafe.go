package ibv

// #cgo noescape weft_ibv_perform
// #cgo nocallback weft_ibv_perform
// #include "seam.h"
import "C"

import (
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/internal/direct"
	"github.com/weft-fabric/weft/internal/hot"
)

// Call is what code that runs without the Go runtime wants of the device before it goes on (struct weft_call). The zero
// Call wants nothing.
type Call struct{ c C.struct_weft_call }

// PostMax is the most operations of a Call.
const PostMax = C.WEFT_POST_MAX

// Post wants n operations posted to a queue pair, from a ring of mask+1 on, 1 to PostMax: each is a work request, or
// part of that of a later one (OpJoined, Op.With).
func (c *Call) Post(qp Handle, ring *Op, mask, from uint64, n int) {
	c.c.want, c.c.n, c.c.err = C.WEFT_WANT_POST, C.int32_t(n), 0
	c.c.qp, c.c.ring = C.uintptr_t(qp), C.uintptr_t(uintptr(unsafe.Pointer(ring)))
	c.c.mask, c.c.from = C.uint64_t(mask), C.uint64_t(from)
}

// Posted says how many of n requests were taken. refused: the next one was not.
func (c *Call) Posted() (taken, n int, refused bool) {
	return int(c.c.taken), int(c.c.n), c.c.err != 0
}

// Poll wants completion queues polled whose count is [Wanted], into done with room for limit of each. count says then
// how many came, -1: the queue is broken.
func (c *Call) Poll(cqs *Queue, done *Done, count []int32, limit int) {
	c.c.want, c.c.n = C.WEFT_WANT_POLL, 0
	c.c.cqs, c.c.done = C.uintptr_t(uintptr(unsafe.Pointer(cqs))), C.uintptr_t(uintptr(unsafe.Pointer(done)))
	c.c.count = C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(count))))
	c.c.queues, c.c.max = C.uint32_t(len(count)), C.uint32_t(limit)
}

// Refill wants receive buffers given back before a Poll.
func (c *Call) Refill(b *Buffers, index []uint32) {
	c.c.buffers, c.c.n = C.uintptr_t(uintptr(unsafe.Pointer(b))), C.int32_t(len(index))
	c.c.index = C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(index))))
}

// Refilled is how many of them were taken.
func (c *Call) Refilled() int { return int(c.c.taken) }

// Nothing wants nothing.
func (c *Call) Nothing() { c.c.want = C.WEFT_WANT_NOTHING }

// Keep has the caller find two words again when the device has done what is wanted.
func (c *Call) Keep(a, b uint64) { c.c.state = [2]C.uint64_t{C.uint64_t(a), C.uint64_t(b)} }

// Kept are the words of Keep.
func (c *Call) Kept() (a, b uint64) { return uint64(c.c.state[0]), uint64(c.c.state[1]) }

// Perform has the device do what is wanted, for code that runs with the runtime.
func (c *Call) Perform() { C.weft_ibv_perform(&c.c) }

// CallAt is a Call by its address.
func CallAt(address uintptr) *Call { return (*Call)(*(*unsafe.Pointer)(unsafe.Pointer(&address))) }

// Wanted is the count of a queue that is to be polled.
const Wanted = C.WEFT_POLL_WANTED

// Queue is a completion queue as C polls it.
type Queue struct{ c C.struct_weft_cq }

// Polled is the queue as C polls it.
func (q *CQ) Polled() Queue { return Queue{q.c} }

// Buffers are the buffers of a shared receive queue: number n begins at Base + n * Stride.
type Buffers struct{ c C.struct_weft_buffers }

// NewBuffers describes buffers of n bytes each that follow one another.
func NewBuffers(q *SRQ, base uint64, n int, lkey uint32) Buffers {
	return Buffers{C.struct_weft_buffers{srq: q.p, base: C.uint64_t(base), stride: C.uint32_t(n), len: C.uint32_t(n),
		lkey: C.uint32_t(lkey)}}
}

// Buffer is the address of buffer n.
func (b *Buffers) Buffer(n uint64) uintptr {
	return uintptr(b.c.base + C.uint64_t(n)*C.uint64_t(b.c.stride))
}

// Bytes is the length of each.
func (b *Buffers) Bytes() uint32 { return uint32(b.c.len) }

// Handle is a queue pair as a word. The zero Handle is none.
type Handle uintptr

// Handle is the queue pair, which the caller keeps open while it is used.
func (q *QP) Handle() Handle { return Handle(uintptr(unsafe.Pointer(q.p))) }

// Functions are the Go functions that C calls when it drives a transport, as package direct wants them. Their last
// argument but one is a [Call]; where it wants something, C has the device do it and calls Again with the same
// arguments.
type Functions struct {
	Send  direct.Func // hot.Path, hot.TransportMessage, Call: hot.PathSent, …
	Next  direct.Func // hot.Transport, hot.TransportMessage, Call: hot.TransportEmpty, …
	Peek  direct.Func // as Next
	Take  direct.Func // hot.Transport, 0, Call: whether another message is at hand
	Flush direct.Func // hot.Transport, 0, Call
	Again direct.Func // what was called before, with its arguments
}

// functions are those that C calls; stored by SetFunctions, before any transport is made.
var functions [C.WEFT_FUNCTIONS]direct.Func

// SetFunctions says what C calls. Each program calls it once, before it makes a transport.
func SetFunctions(f Functions) {
	functions = [C.WEFT_FUNCTIONS]direct.Func{
		C.WEFT_FUNCTION_SEND: f.Send, C.WEFT_FUNCTION_NEXT: f.Next, C.WEFT_FUNCTION_PEEK: f.Peek,
		C.WEFT_FUNCTION_TAKE: f.Take, C.WEFT_FUNCTION_FLUSH: f.Flush, C.WEFT_FUNCTION_AGAIN: f.Again,
	}
}

// routing is locked while C's route is stored: several threads may open interfaces at once.
var routing sync.Mutex

// Route has C call the functions without the runtime, where package direct has a trampoline, or else by callbacks,
// as at first. It reports whether C calls them without the runtime. It holds for all transports of the process.
func Route(without bool) bool {
	var entry [C.WEFT_FUNCTIONS]C.uintptr_t
	for n, f := range functions {
		entry[n] = C.uintptr_t(direct.Entry(f))
	}
	enter := direct.Trampoline()
	if !without {
		enter = 0
	}
	routing.Lock()
	defer routing.Unlock()
	C.weft_ibv_route(C.weft_enter(*(*unsafe.Pointer)(unsafe.Pointer(&enter))), &entry[0])
	return enter != 0
}

// weftGoVerbs calls one of the functions on the route that enters the runtime.
//
//export weftGoVerbs
func weftGoVerbs(function, a, b, c, d C.uintptr_t) C.uintptr_t {
	return C.uintptr_t(functions[function](uintptr(a), uintptr(b), uintptr(c), uintptr(d)))
}

// DriveTransport has C drive a transport by the functions, and DrivePath send over a path. Both lie off the Go heap.
func DriveTransport(p *hot.Transport) {
	C.weft_ibv_transport_init((*C.struct_weft_hot_transport)(unsafe.Pointer(p)))
}

// DrivePath has C send over a path.
func DrivePath(p *hot.Path) { C.weft_ibv_path_init((*C.struct_weft_hot_path)(unsafe.Pointer(p))) }
