package hw

import (
	"errors"
	"sync"
	"sync/atomic"
)

// Retry tries an operation again. It returns ErrNoResource to stay in the
// queue; anything else takes it out. It must not call methods of the queue.
type Retry func() error

// Pending holds operations that met ErrNoResource, in order for each endpoint.
// A caller who finds operations of his endpoint here must add his own behind
// them ([Pending.Has]) if he wants order. The zero Pending is empty.
type Pending struct {
	// n is the number of operations held. Written under mu, read by anybody
	// who wants to know whether there is anything to do; sequentially
	// consistent.
	n atomic.Int64

	// mu guards queues. It is not on the data path: an operation comes here
	// only when the transport was full.
	mu     sync.Mutex
	queues map[Endpoint][]Retry
}

// Add puts an operation behind those of its endpoint.
func (p *Pending) Add(ep Endpoint, r Retry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues == nil {
		p.queues = map[Endpoint][]Retry{}
	}
	p.queues[ep] = append(p.queues[ep], r)
	p.n.Add(1)
}

// Has tells whether operations of the endpoint wait.
func (p *Pending) Has(ep Endpoint) bool {
	if p.n.Load() == 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queues[ep]) != 0
}

// Len is the number of operations that wait.
func (p *Pending) Len() int { return int(p.n.Load()) }

// Dispatch tries the operations, each endpoint's in order until one finds no
// resource, and returns how many are done with.
func (p *Pending) Dispatch() int {
	if p.n.Load() == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	total := 0
	for ep, q := range p.queues {
		gone := 0
		for gone < len(q) && !errors.Is(q[gone](), ErrNoResource) {
			gone++
		}
		total += gone
		p.keep(ep, q[gone:])
	}
	p.n.Add(-int64(total))
	return total
}

func (p *Pending) keep(ep Endpoint, q []Retry) {
	if len(q) == 0 {
		delete(p.queues, ep)
		return
	}
	p.queues[ep] = q
}

// Purge takes the endpoint's operations out and gives them to f, in order, nil
// to drop them. They are not tried.
func (p *Pending) Purge(ep Endpoint, f func(Retry)) {
	p.mu.Lock()
	q := p.queues[ep]
	delete(p.queues, ep)
	p.n.Add(-int64(len(q)))
	p.mu.Unlock()
	for _, r := range q {
		if f != nil {
			f(r)
		}
	}
}
