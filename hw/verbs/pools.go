package verbs

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
)

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
	resting []block // until C's threads that were posting to their peers have ended
}

type chunk struct {
	memory []byte
	mr     *ibv.MR
}

// block is the memory of one queue, and of a peer as the data plane sees it.
type block struct {
	memory []byte
	lkey   uint32
	grace  *hot.Grace // while resting
}

// chunkBlocks is the number of blocks that are registered together.
const chunkBlocks = 4

func (p *blockPool) blockBytes() int { return transport.BlockBytes(p.depth) }

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
		mr, err := p.pd.Register(mem.Address(b), uint64(len(b)), ibv.LocalWrite)
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
const joinBytes = transport.HeaderBytes + maxShort + minBounceSize

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
