package verbs

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/hot"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/ibv"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
)

// bouncePool is one stripe's bounce buffers. Who holds the stripe's lease
// takes them; the lease holder of Progress gives them back.
type bouncePool struct {
	first int32           // number of buffer 0, immutable
	next  uint32          // where to look; written by who holds the stripe's lease
	busy  []atomic.Uint32 // 1 while taken: stored by the taker, cleared (release) by the progress lease holder
	_     [24]byte
}

// take finds a free buffer among the next few. -1: none.
func (p *bouncePool) take() int32 {
	for k := range min(uint32(len(p.busy)), 8) {
		n := (p.next + k) % uint32(len(p.busy))
		if p.busy[n].Load() == 0 {
			p.busy[n].Store(1)
			p.next = n + 1
			return p.first + int32(n)
		}
	}
	return -1
}

func (p *bouncePool) put(n int32) { p.busy[n-p.first].Store(0) }

// getPool are the bounce buffers for gets, which name no stripe: any thread
// takes them.
type getPool struct {
	first int32 // number of buffer 0, immutable
	next  atomic.Uint32
	busy  []atomic.Uint32 // 1 while taken: by compare-and-swap by any thread, cleared (release) by the progress lease holder
}

// getCount is the number of bounce buffers for gets.
func (i *Iface) getCount() int { return max(4, i.cfg.BounceCount/4) }

func (p *getPool) open(first int32, n int) {
	p.first, p.busy = first, make([]atomic.Uint32, n)
}

// take finds a free buffer. -1: none.
func (p *getPool) take() int32 {
	for range p.busy {
		n := p.next.Add(1) % uint32(len(p.busy))
		if p.busy[n].CompareAndSwap(0, 1) {
			return p.first + int32(n)
		}
	}
	return -1
}

func (p *getPool) put(n int32) { p.busy[n-p.first].Store(0) }

// freeBounce gives a bounce buffer back.
func (i *Iface) freeBounce(n int32) {
	if n >= i.gets.first {
		i.gets.put(n)
		return
	}
	for s := range i.bounce {
		if p := &i.bounce[s]; n < p.first+int32(len(p.busy)) {
			p.put(n)
			return
		}
	}
}

// bounceBuffer is the memory of a bounce buffer, and its address.
func (i *Iface) bounceBuffer(n int32) ([]byte, uint64) {
	at := (i.cfg.RxBuffers + int(n)) * i.stride
	return i.memory[at : at+i.stride : at+i.stride], i.first + uint64(at)
}

// rxBuffer is the memory of a receive buffer.
func (i *Iface) rxBuffer(n uint32) []byte {
	at := int(n) * i.stride
	return i.memory[at : at+i.stride : at+i.stride]
}

// blockPool hands out the registered memory of queues: for each place a work
// request and a slot.
type blockPool struct {
	pd    *ibv.PD // immutable
	depth int     // places of a queue, a power of two; immutable

	mu      sync.Mutex // making and ending connections only
	chunks  []chunk
	free    []block
	resting []block // until C's threads that were posting to their peers have finished
}

type chunk struct {
	memory []byte
	mr     *ibv.MR
}

// block is the memory of one queue, and of a peer as C sees it.
type block struct {
	memory []byte
	lkey   uint32
	grace  *hot.Grace // while resting
}

// chunkBlocks is the number of blocks that are registered together.
const chunkBlocks = 4

func (p *blockPool) blockBytes() int { return ibv.BlockBytes(p.depth) }

// get takes a block, registering more if need be.
func (p *blockPool) get() (block, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resting = slices.DeleteFunc(p.resting, func(b block) bool {
		over := b.grace.Over()
		if over {
			p.free = append(p.free, b)
		}
		return over
	})
	if len(p.free) == 0 {
		size := p.blockBytes()
		b, err := mapPinned(size * chunkBlocks)
		if err != nil {
			return block{}, fmt.Errorf("verbs: queue memory: %w: %w", err, hw.ErrNoResource)
		}
		mr, err := p.pd.Register(addressOf(b), uint64(len(b)), ibv.LocalWrite)
		if err != nil {
			_ = mem.Unmap(b)
			return block{}, registered(err, uint64(len(b)))
		}
		p.chunks = append(p.chunks, chunk{b, mr})
		for n := range chunkBlocks {
			p.free = append(p.free, block{memory: b[n*size : (n+1)*size : (n+1)*size], lkey: mr.LKey})
		}
	}
	b := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return b, nil
}

// put takes a block back. Nothing in Go leads to its peer any more, and the layer
// above has taken the peer from C.
func (p *blockPool) put(b block) {
	order.Barrier()
	b.grace = hot.NewGrace()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resting = append(p.resting, b)
}

// close gives all memory back. The queues are gone.
func (p *blockPool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var first error
	for _, c := range p.chunks {
		if err := c.mr.Close(); err != nil && first == nil {
			first = err
			continue
		}
		_ = mem.Unmap(c.memory)
	}
	p.chunks, p.free, p.resting = nil, nil, nil
	return first
}

// joinBytes is the most that goes in one packet of several messages: every
// peer's receive buffers have room for it, whatever its settings.
const joinBytes = headerBytes + maxShort + minBounceSize

// attach gives a queue its memory. The block goes back to the pool when the
// collector finds that no thread holds the endpoint any more: a thread that is
// about to post to a peer that has just died still writes there.
func (p *blockPool) attach(e *Endpoint, q *queue) error {
	b, err := p.get()
	if err != nil {
		return err
	}
	runtime.AddCleanup(e, p.put, b)
	q.lay(b.memory, p.depth, b.lkey)
	q.JoinBytes = joinBytes
	return nil
}
