package proxy

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/mpsc"
)

// Op is an operation that a thread of weft's carries out for the thread that posts it.
// What its fields mean is between the thread that posts and [ProgressOptions].Do.
type Op struct {
	Code   uint32
	Target uint32
	Args   [6]uint64
}

// opSlot is an operation in the pool's ring, one cache line.
type opSlot struct {
	seq uint64
	op  Op
}

const opBytes = unsafe.Sizeof(opSlot{})

var _ [hot.CacheLine - opBytes]byte // an operation fills its line, and
var _ [opBytes - hot.CacheLine]byte // no more

// Pool is where operations wait for the thread that carries them out: a ring of
// package mpsc, so posting takes no lock, a full pool is left untouched, and
// operations come out in the order in which their slots were claimed. Any
// thread may post; one consumer at a time takes. See the package comment for
// how the consumer sleeps.
type Pool struct {
	ring   mpsc.Ring
	memory []byte
	bell   *Bell         // the consumer sleeps on it
	head   uint64        // the consumer's
	taken  atomic.Uint64 // how many; added to by the consumer, loaded by any; relaxed
}

// NewPool returns a pool of at least size operations, whose consumer sleeps on
// bell.
func NewPool(size int, bell *Bell) (*Pool, error) {
	log := uint32(4)
	for 1<<log < size && log < 20 {
		log++
	}
	memory, err := mem.Map(hot.CacheLine+int(opBytes)<<log, mem.NoReserve)
	if err != nil {
		return nil, fmt.Errorf("operations pool: %w", err)
	}
	base := unsafe.Pointer(unsafe.SliceData(memory))
	return &Pool{
		ring:   mpsc.NewView(unsafe.Add(base, hot.CacheLine), base, log, uint32(opBytes)),
		memory: memory, bell: bell,
	}, nil
}

// Close gives the memory back. No thread may post or take any more.
func (p *Pool) Close() error { return mem.Unmap(p.memory) }

// Size is the number of operations that the pool holds.
func (p *Pool) Size() int { return int(p.ring.Slots()) }

// Post adds an operation and wakes the consumer if it sleeps. False: the pool
// is full, and nothing has happened.
func (p *Pool) Post(op Op) bool {
	if !p.put(&op) {
		return false
	}
	p.bell.Ring()
	return true
}

// PostBatch adds operations, in order, as far as there is room, and returns how
// many. It reads once whether the consumer sleeps.
func (p *Pool) PostBatch(ops []Op) int {
	n := 0
	for n < len(ops) && p.put(&ops[n]) {
		n++
	}
	if n > 0 {
		p.bell.Ring()
	}
	return n
}

func (p *Pool) put(op *Op) bool {
	slot, pos, ok := p.ring.Claim(0, false)
	if ok {
		(*opSlot)(slot).op = *op
		p.ring.Publish(slot, 0, pos)
	}
	return ok
}

// Take takes up to len(dst) operations off the pool and returns how many. Only
// the consumer calls it.
func (p *Pool) Take(dst []Op) int {
	n := 0
	for n < len(dst) && p.ring.Ready(p.head) {
		dst[n] = (*opSlot)(p.ring.Slot(p.head)).op
		p.ring.Release(p.head)
		p.head++
		n++
	}
	if n > 0 {
		p.taken.Add(uint64(n))
	}
	return n
}

// Ready reports to the consumer whether Take would find something.
func (p *Pool) Ready() bool { return p.ring.Ready(p.head) }

// Taken is the number of operations that were ever taken. Any thread may ask.
func (p *Pool) Taken() uint64 { return p.taken.Load() }
