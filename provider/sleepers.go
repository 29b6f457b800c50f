package provider

import (
	"slices"
	"sync"
)

// sleepers are the endpoints of a receive context on whose queues threads may sleep. Its methods may be called by any
// thread. An endpoint's queues stay open until remove has returned.
type sleepers struct {
	mu  sync.Mutex // not on the data path
	eps []*Endpoint
}

func (s *sleepers) add(e *Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eps = append(s.eps, e)
}

func (s *sleepers) remove(e *Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eps = slices.DeleteFunc(s.eps, func(o *Endpoint) bool { return o == e })
}

// wake has threads that sleep on the endpoints' queues poll again, after work was published for the next poll. The
// caller has passed a full fence since.
func (s *sleepers) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.eps {
		for _, q := range e.base.bound.queues() {
			q.Waiter().Wake()
		}
	}
}
