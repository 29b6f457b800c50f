package hw

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Retry tries an operation again. It returns ErrNoResource to stay in the
// queue; anything else takes it out. It may call methods of the queue, as a
// completion that it updates does when it posts more.
type Retry func() error

// Pending holds operations that met ErrNoResource, in order for each endpoint. A caller that finds operations of its
// endpoint here must add its own behind them ([Pending.Has]) if it wants order. The zero Pending is empty.
type Pending struct {
	// n is the number of waiting operations. Written under mu, read by any thread that checks whether
	// there is anything to do; sequentially consistent.
	n atomic.Int64

	// mu guards what follows. It is not on the data path: an operation comes here
	// only when the transport was full. No operation is tried under it.
	mu     sync.Mutex
	queues map[Endpoint][]Retry
	// trying is the endpoint whose first operation is being tried, nil: none is. That
	// operation stays first in its queue until it has been, unless the queue is purged
	// meanwhile: then purged is what it is given to if it finds no resource.
	trying Endpoint
	purged func(Retry)
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

// Has reports whether operations of the endpoint wait.
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
// resource, and returns how many are done with. Operations are tried one at a time:
// while one is, another Dispatch, of its own or another thread, does nothing.
func (p *Pending) Dispatch() int {
	if p.n.Load() == 0 {
		return 0
	}
	p.mu.Lock()
	endpoints := slices.Collect(maps.Keys(p.queues))
	p.mu.Unlock()
	total := 0
	for _, ep := range endpoints {
		// Those only that wait by now: one that fails and is added again has its next turn.
		for left := p.waiting(ep); left > 0; left-- {
			r := p.begin(ep)
			if r == nil || !p.end(ep, r, r()) {
				break
			}
			total++
		}
	}
	return total
}

// waiting is the number of the endpoint's operations.
func (p *Pending) waiting(ep Endpoint) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queues[ep])
}

// begin returns the endpoint's first operation for the caller to try, nil if there is none or
// another is being tried.
func (p *Pending) begin(ep Endpoint) Retry {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[ep]
	if len(q) == 0 || p.trying != nil {
		return nil
	}
	p.trying = ep
	return q[0]
}

// end takes in what became of the operation that begin returned, and reports whether it is done with.
func (p *Pending) end(ep Endpoint, r Retry, err error) bool {
	p.mu.Lock()
	f := p.purged
	p.trying, p.purged = nil, nil
	done := !errors.Is(err, ErrNoResource)
	if done || f != nil {
		p.n.Add(-1)
	}
	if done && f == nil {
		p.keep(ep, p.queues[ep][1:])
	}
	p.mu.Unlock()
	if !done && f != nil {
		f(r)
	}
	return done
}

func (p *Pending) keep(ep Endpoint, q []Retry) {
	if len(q) == 0 {
		delete(p.queues, ep)
		return
	}
	p.queues[ep] = q
}

// Purge takes the endpoint's operations out and gives them to f, in order, nil
// to drop them. They are not tried. One that is being tried is given to f later, by
// Dispatch, and only if it finds no resource.
func (p *Pending) Purge(ep Endpoint, f func(Retry)) {
	if f == nil {
		f = func(Retry) {}
	}
	p.mu.Lock()
	q := p.queues[ep]
	delete(p.queues, ep)
	if p.trying == ep && p.purged == nil && len(q) != 0 {
		p.purged, q = f, q[1:]
	}
	p.n.Add(-int64(len(q)))
	p.mu.Unlock()
	for _, r := range q {
		f(r)
	}
}
