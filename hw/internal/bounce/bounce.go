// Package bounce hands out the bounce buffers of a device's interface by number: each transmit stripe has its own.
package bounce

import "sync/atomic"

// Pools are the buffers of an interface: numbers from 0 up. The zero value has none.
type Pools struct {
	stripes []stripePool
}

// stripePool is one stripe's. The holder of the stripe's lease takes them; the thread that learns of the end of an
// operation gives them back.
type stripePool struct {
	first int32           // number of buffer 0, immutable
	next  uint32          // where the search begins; written by the holder of the stripe's lease
	busy  []atomic.Uint32 // 1 while taken: stored by the taker, cleared (release) by the thread that frees it
	_     [24]byte
}

// Open makes count free buffers for the stripes, at least one for each.
func (p *Pools) Open(count, stripes int) {
	p.stripes = make([]stripePool, stripes)
	for n := range p.stripes {
		lo, hi := n*count/stripes, (n+1)*count/stripes
		p.stripes[n] = stripePool{first: int32(lo), busy: make([]atomic.Uint32, hi-lo)}
	}
}

// Stripes is the number of stripes.
func (p *Pools) Stripes() int { return len(p.stripes) }

// Take takes a buffer of a stripe, whose lease the caller holds, if one of the next few is free. -1: none.
func (p *Pools) Take(stripe int) int32 {
	s := &p.stripes[stripe]
	for k := range min(uint32(len(s.busy)), 8) {
		n := (s.next + k) % uint32(len(s.busy))
		if s.busy[n].Load() == 0 {
			s.busy[n].Store(1)
			s.next = n + 1
			return s.first + int32(n)
		}
	}
	return -1
}

// Put gives a buffer back.
func (p *Pools) Put(n int32) {
	for i := range p.stripes {
		if s := &p.stripes[i]; n < s.first+int32(len(s.busy)) {
			s.busy[n-s.first].Store(0)
			return
		}
	}
}
