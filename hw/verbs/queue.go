package verbs

import (
	"runtime"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/ibv"
)

// slotBytes is what an operation may copy: a short message with its header.
const slotBytes = headerBytes + maxShort

// maxShort is the payload and head of a short message.
const maxShort = 104

// reserve is the number of places of a queue that only control operations get.
const reserve = 4

// States of queue.run.
const (
	stopped uint32 = iota // nobody posts: not connected
	idle                  // who has something to post may take it
	busy                  // a thread posts
)

// entryKind says what to do when an operation has ended.
type entryKind uint8

const (
	entryPlain   entryKind = iota // nothing but what the other fields say
	entryGet                      // unpack from the bounce buffer
	entryFetch                    // result from the slot
	entryLoop                     // a step of a casLoop
	entryControl                  // not a caller's: an error is not told
)

// entry is what Go remembers of an operation. Filled by who claimed the place,
// before ready is stored; read by the poster, then by the lease holder.
type entry struct {
	// ready is the position plus one when the operation may be posted. Stored
	// with release by who claimed the place, loaded with acquire by the poster.
	ready  atomic.Uint64
	kind   entryKind
	signal bool  // tell of its completion
	weight uint8 // toward the next completion that is told
	bounce int32 // buffer to be freed, -1 for none
	n      int   // bytes of an entryGet, size of an entryFetch
	comp   *hw.Completion
	unpack func([]byte)
	result *uint64
	loop   *casLoop
}

// queue is a ring of work requests and the queue pair that takes them.
//
// tail counts claimed places, posted those that the queue pair has, head those
// that have ended: head <= posted <= tail <= head + depth. Positions are 64
// bits and never wrap; a place is position & mask.
type queue struct {
	_     [64]byte      // tail is written by every poster
	tail  atomic.Uint64 // claimed by compare-and-swap by any thread, sequentially consistent
	_     [56]byte
	head  atomic.Uint64 // stored by the lease holder (release), read by who claims (acquire)
	run   atomic.Uint32 // stopped, idle, busy: taken by compare-and-swap (acquire), given back by store (release)
	_     [52]byte
	mask  uint64 // immutable, as what follows to entries
	id    uint32 // of its peer
	class uint64 // classMessage or classMemory
	ops   []ibv.Op
	slots []byte // off the Go heap, registered
	lkey  uint32
	first uint64 // address of slots

	entries []entry
	cq      *sendCQ

	// The rest is written by who holds run (busy), or by who has stopped the queue.
	posted uint64
	weight int   // since the last completion that is told
	gen    uint8 // of the queue pair; completions of older ones are ignored
	qp     *ibv.QP
	inline int // bytes

	// lastSignal is the position after the last operation whose completion is
	// told. Stored by who holds run, read by the lease holder; sequentially
	// consistent, as broken, which says that the queue pair refused a post.
	lastSignal atomic.Uint64
	broken     atomic.Bool
	// lastSend is the position after the last message. Stored by who holds
	// run, read by the service when the interface closes.
	lastSend atomic.Uint64
	// fence asks that the next operation wait for reads and atomics. Set by
	// Fence, taken by who claims.
	fence atomic.Bool
}

// closedBit in a queue's tail says that no place may be claimed any more.
const closedBit = 1 << 63

// sendCQ is a completion queue for what is posted. used keeps it from running
// over: an operation is posted only when its completion has a place, for a queue
// pair that breaks completes all its operations.
type sendCQ struct {
	cq   *ibv.CQ
	used atomic.Int64 // operations posted and not ended; added to by posters and by the lease holder, sequentially consistent
	size int64        // immutable
}

// Completion ids: class, peer, generation of the queue pair, low half of the position.
const (
	classMessage = 0
	classMemory  = 1
)

func (q *queue) completionID(pos uint64) uint64 {
	return q.class<<62 | uint64(q.id)<<40 | uint64(q.gen)<<32 | pos&0xffffffff
}

func splitID(id uint64) (class uint64, peer uint32, gen uint8, low uint32) {
	return id >> 62, uint32(id>>40) & (maxPeers - 1), uint8(id >> 32), uint32(id)
}

// claim takes a place, leaving keep places free. False: there is none.
func (q *queue) claim(keep uint64) (pos uint64, ok bool) {
	for {
		t := q.tail.Load()
		if t&closedBit != 0 || t-q.head.Load()+keep > q.mask {
			return 0, false
		}
		if q.tail.CompareAndSwap(t, t+1) {
			e := &q.entries[t&q.mask]
			e.kind, e.signal, e.weight, e.bounce = entryPlain, false, 1, -1
			return t, true
		}
	}
}

func (q *queue) op(pos uint64) *ibv.Op   { return &q.ops[pos&q.mask] }
func (q *queue) entry(pos uint64) *entry { return &q.entries[pos&q.mask] }

// slot is the memory that belongs to a place.
func (q *queue) slot(pos uint64) []byte {
	at := (pos & q.mask) * slotBytes
	return q.slots[at : at+slotBytes : at+slotBytes]
}

func (q *queue) slotSGE(pos uint64, n int) ibv.SGE {
	return ibv.SGE{Addr: q.first + (pos&q.mask)*slotBytes, Len: uint32(n), LKey: q.lkey}
}

// publish marks a filled place ready and posts what is ready.
func (q *queue) publish(pos uint64) {
	q.entries[pos&q.mask].ready.Store(pos + 1)
	q.post()
}

// postBatch bounds how many operations one call into C posts.
const postBatch = 32

// post gives the queue pair what is ready, unless another thread is at it:
// that thread looks again after it has let go. True: nothing stays that the
// queue pair could take.
func (q *queue) post() bool {
	for q.run.CompareAndSwap(idle, busy) {
		all := q.postReady()
		next := q.posted
		q.run.Store(idle)
		if !all || q.entries[next&q.mask].ready.Load() != next+1 {
			return all
		}
	}
	return q.run.Load() == busy
}

// postReady posts until nothing is ready. False: the completion queue has no
// room, or the queue pair refuses. The caller holds run.
func (q *queue) postReady() bool {
	for {
		n := 0
		for n < postBatch && q.entries[(q.posted+uint64(n))&q.mask].ready.Load() == q.posted+uint64(n)+1 {
			n++
		}
		if n == 0 {
			return true
		}
		if q.cq.used.Add(int64(n)) > q.cq.size {
			q.cq.used.Add(-int64(n))
			return false
		}
		q.sign(n)
		taken, err := q.qp.Post(q.ops, q.posted, n)
		q.posted += uint64(taken)
		if err != nil {
			q.cq.used.Add(int64(taken - n))
			q.broken.Store(true)
			return false
		}
	}
}

// sign numbers the next n operations and decides which of their completions are
// told: those that somebody waits for, and one from time to time, which tells
// of all before it. An operation weighs more when it holds a bounce buffer.
func (q *queue) sign(n int) {
	limit := int(q.mask+1) / 4
	for k := range uint64(n) {
		pos := q.posted + k
		op, e := q.op(pos), q.entry(pos)
		op.ID = q.completionID(pos)
		op.Flags &^= ibv.Signaled
		q.weight += int(e.weight)
		if op.Opcode == ibv.OpSend {
			q.lastSend.Store(pos + 1)
		}
		if e.signal || q.weight >= limit {
			op.Flags |= ibv.Signaled
			q.weight = 0
			q.lastSignal.Store(pos + 1)
		}
	}
}

// stop waits until nobody posts, and keeps it so. Only the lease holder stops
// a queue, and only the service and the lease holder start one.
func (q *queue) stop() {
	for !q.run.CompareAndSwap(idle, stopped) && q.run.Load() != stopped {
		runtime.Gosched() // a poster is in one call into C
	}
}

// start lets the queue post, on a queue pair that is ready to send.
func (q *queue) start() {
	q.run.Store(idle)
	q.post()
}

// rewind has everything that has not ended posted again, by the next queue
// pair. The queue is stopped and head is what has ended.
func (q *queue) rewind() {
	head := q.head.Load()
	if q.posted > head {
		q.cq.used.Add(-int64(q.posted - head))
	}
	q.posted, q.weight = head, 0
	q.lastSignal.Store(head)
	q.broken.Store(false)
}

// close lets nobody claim a place any more and waits until every place that
// was claimed is filled. The queue is stopped.
func (q *queue) close() {
	end := q.tail.Or(closedBit) &^ closedBit
	for pos := q.head.Load(); pos < end; pos++ {
		for q.entry(pos).ready.Load() != pos+1 {
			runtime.Gosched() // the claimer is copying
		}
	}
}

// end is the position after the last that was claimed.
func (q *queue) end() uint64 { return q.tail.Load() &^ closedBit }

// quiet tells whether nothing was claimed that has not ended.
func (q *queue) quiet() bool { return q.head.Load() == q.end() }

// told tells whether the completions of all operations so far will be told.
func (q *queue) told() bool { return q.lastSignal.Load() >= q.end() }
