package cxi

import "sync/atomic"

// bouncePool is one stripe's bounce buffers. Who holds the stripe's lease
// takes them; who learns of the end of an operation gives them back.
type bouncePool struct {
	first int32           // number of buffer 0, immutable
	next  uint32          // where to look; written by who holds the stripe's lease
	busy  []atomic.Uint32 // 1 while taken: stored by the taker, cleared (release) by who frees it
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
	busy  []atomic.Uint32 // 1 while taken: by compare-and-swap by any thread, cleared (release) by the lease holder
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
	for s := range i.pools {
		if p := &i.pools[s]; n < p.first+int32(len(p.busy)) {
			p.put(n)
			return
		}
	}
}

// bounceBuffer is the memory of a bounce buffer, and where it begins.
func (i *Iface) bounceBuffer(n int32) (b []byte, off int) {
	off = int(n) * i.stride
	return i.bounce.memory[off : off+i.stride : off+i.stride], off
}
