package provider

import (
	"slices"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// Progress of receive contexts without a queue. Peers read from and write to such a context, so that there is nothing
// to bind to it, and without automatic progress no thread would serve them. Readers of the queues of the scalable
// endpoint's transmit contexts do.

// served is a queue whose readers make progress of a receive context.
type served struct {
	rx *Endpoint
	by queue
}

// join adds a context that is enabled. The caller has its mu.
func (s *Scalable) join(e *Endpoint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enabledCtxs = append(s.enabledCtxs, e)
	if e.base.receivesOnly() {
		if !e.base.chosen.silent {
			return nil
		}
		s.silent = append(s.silent, e)
	}
	return s.serveBy(s.transmitQueues()...)
}

// serveBy makes readers of queues serve all silent contexts. The caller has s.mu.
func (s *Scalable) serveBy(queues ...queue) error {
	for _, q := range queues {
		for _, rx := range s.silent {
			if slices.Contains(s.serving, served{rx, q}) {
				continue
			}
			if err := rx.base.serveBy(q); err != nil {
				return fi.ErrnoOf(err)
			}
			s.serving = append(s.serving, served{rx, q})
		}
	}
	return nil
}

// transmitQueues lists the queues of enabled transmit contexts. The caller has s.mu.
func (s *Scalable) transmitQueues() []queue {
	var list []queue
	for _, e := range s.enabledCtxs {
		if e.base.receivesOnly() {
			continue
		}
		for _, q := range e.base.bound.queues() {
			if !slices.Contains(list, q) {
				list = append(list, q)
			}
		}
	}
	return list
}

// leave takes a context out that is about to be disabled, whether join has added it or not. The caller has its mu.
func (s *Scalable) leave(e *Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(other *Endpoint) bool { return other == e }
	s.enabledCtxs = slices.DeleteFunc(s.enabledCtxs, is)
	s.silent = slices.DeleteFunc(s.silent, is)
	s.unserve()
}

// countLate binds a counter to an enabled endpoint, of s or, where that is nil, of none. If it is a context that
// transmits, readers of the counter serve the silent contexts, too. The caller has the endpoint's mu.
func (s *Scalable) countLate(e *Endpoint, c *cq.Counter, flags uint64) error {
	if s == nil || e.base.receivesOnly() {
		return e.base.countLate(c, flags)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.unserve() // after an error
	if err := s.serveBy(c); err != nil {
		return err
	}
	return e.base.countLate(c, flags)
}

// unserve takes back serveBy for contexts that are not silent ones any more, and for queues that no transmit context
// has any more. The caller has s.mu.
func (s *Scalable) unserve() {
	stay := s.transmitQueues()
	s.serving = slices.DeleteFunc(s.serving, func(v served) bool {
		gone := !slices.Contains(s.silent, v.rx) || !slices.Contains(stay, v.by)
		if gone {
			v.rx.base.transports.listenNoMore(v.by)
			v.rx.base.detach(v.by)
		}
		return gone
	})
}

// serveBy makes readers of a queue poll the endpoint, and threads that sleep on it listen to its doorbell and to what
// comes from other hosts.
func (e *peering) serveBy(q queue) error {
	var source *cq.Source
	var err error
	e.domain.drives.Do(func() { source, err = e.sourceOf(q) })
	if err != nil {
		return err
	}
	if err := q.Attach(e.hot); err != nil {
		return err
	}
	if err := q.AddSource(source); err != nil {
		_ = q.Detach(e.hot) // it is attached
		return err
	}
	e.transports.listenAlso(q)
	return nil
}
