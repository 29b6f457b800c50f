package verbs

import (
	"runtime"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
	"github.com/weft-fabric/weft/internal/mem"
)

// slotBytes is what an operation may copy: a short message with its header.
const slotBytes = transport.SlotBytes

// maxShort is the payload and head of a short message.
const maxShort = transport.MaxShort

// reserve is the number of places of a queue that only control operations get.
const reserve = transport.QueueReserve

// entryKind says what to do when an operation has ended.
type entryKind uint8

const (
	entryPlain   entryKind = iota // nothing but what the other fields say
	entryControl                  // not a caller's: an error is not reported
	entryRepeat                   // may be done twice
)

// entry is what Go alone remembers of an operation; the rest is in its place. Filled by the thread
// that claimed the place, before it is ready; read by the lease holder. Of a plain one it says nothing.
type entry struct {
	kind entryKind
	comp *hw.Completion
}

// queue is a ring of work requests on their way to a queue pair. What the data plane (package transport) has of it is
// in the SendQueue, the places, requests and slots, off the Go heap.
type queue struct {
	*transport.SendQueue // nil until the queue has its memory
	places               []transport.Place
	ops                  []ibv.Op
	slots                []byte // registered
	first                uint64 // address of slots
	entries              []entry
	cq                   *sendCQ
	qp                   *ibv.QP // as SendQueue's
	// fence asks that the next operation wait for reads and atomics. Set by
	// Fence, taken by the thread that claims.
	fence atomic.Bool
}

// sendCQ is a completion queue for what is posted, with the count that keeps it
// from running over, off the Go heap.
type sendCQ struct {
	cq *ibv.CQ
	*transport.SendCQ
}

// Completion ids: class, peer, generation of the queue pair, low half of the position.
const (
	classMessage = 0
	classMemory  = 1
)

// queueID is what the ids of a queue's completions have in common.
func queueID(class uint64, peer uint32) uint64 { return class<<62 | uint64(peer)<<40 }

func splitID(id uint64) (class uint64, peer uint32) {
	return id >> 62, uint32(id>>40) & (maxPeers - 1)
}

func (q *queue) op(pos uint64) *ibv.Op             { return &q.ops[pos&q.Mask] }
func (q *queue) place(pos uint64) *transport.Place { return &q.places[pos&q.Mask] }
func (q *queue) entry(pos uint64) *entry           { return &q.entries[pos&q.Mask] }

// signal has the operation of a place write a completion.
func (q *queue) signal(pos uint64) { q.place(pos).Signal = 1 }

// bounceWeight is how much more an operation with a bounce buffer counts toward
// the next signaled operation: buffers are scarcer than places.
const bounceWeight = 8

// holds says that a place's operation uses a bounce buffer, freed when it has ended.
func (q *queue) holds(pos uint64, buffer int32) {
	p := q.place(pos)
	p.Bounce, p.Weight = buffer, bounceWeight
}

// slot is the memory that belongs to a place.
func (q *queue) slot(pos uint64) []byte {
	at := (pos & q.Mask) * slotBytes
	return q.slots[at : at+slotBytes : at+slotBytes]
}

// slotSGE is a piece of n bytes of a place's slot.
func (q *queue) slotSGE(pos uint64, n int) ibv.SGE {
	return ibv.SGE{Addr: q.first + (pos&q.Mask)*slotBytes, Len: uint32(n), LKey: q.LKey}
}

// publish marks a filled place ready and posts what is ready.
func (q *queue) publish(pos uint64) {
	q.Ready(pos)
	q.Post()
}

// stop waits until no thread posts, and keeps it so. Only the lease holder stops
// a queue, and only the service and the lease holder start one.
func (q *queue) stop() {
	for !q.Run.CompareAndSwap(transport.QueueIdle, transport.QueueStopped) && q.Run.Load() != transport.QueueStopped {
		runtime.Gosched() // the thread that posts is in one call into C
	}
}

// lay lays a stopped queue into its memory.
func (q *queue) lay(memory []byte, depth int, lkey uint32) {
	q.SendQueue, q.places, q.ops, q.slots = transport.SendQueueAt(memory, depth, lkey)
	q.first = mem.Address(q.slots)
	q.entries = make([]entry, depth)
}

// reports names the queue's completion queue, before it runs.
func (q *queue) reports(c *sendCQ) {
	q.cq = c
	q.SetCQ(c.SendCQ)
}

// use gives the stopped queue a queue pair.
func (q *queue) use(qp *ibv.QP) {
	q.qp = qp
	q.SetQP(qp)
}

// start lets the queue post, on a queue pair that is ready to send.
func (q *queue) start() {
	q.Run.Store(transport.QueueIdle)
	q.Post()
}

// rewind has everything that has not ended posted again, by the next queue
// pair. The queue is stopped and head is what has ended.
func (q *queue) rewind() {
	head := q.Head.Load()
	if q.Posted > head {
		q.cq.Used.Add(-int64(q.Posted - head))
	}
	q.Posted, q.Weight = head, 0
	q.LastSignal.Store(head)
	q.Broken.Store(0)
}

// close makes all claims of places fail from now on and waits until every place that
// was claimed is filled. The queue is stopped.
func (q *queue) close() {
	end := q.Tail.Or(transport.QueueClosed) &^ transport.QueueClosed
	for pos := q.Head.Load(); pos < end; pos++ {
		for q.place(pos).Ready.Load() != pos+1 {
			runtime.Gosched() // the claimer is copying
		}
	}
}

// quiet reports whether nothing was claimed that has not ended.
func (q *queue) quiet() bool { return q.Head.Load() == q.End() }

// signaled reports whether all operations so far are covered by a completion.
func (q *queue) signaled() bool { return q.LastSignal.Load() >= q.End() }
