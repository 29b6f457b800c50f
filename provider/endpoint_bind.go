package provider

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
)

// bind runs f if the endpoint may still be bound, and counts a use of the
// bound object.
func (e *Endpoint) bind(what string, acquire func() error, release func(), f func() error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.Load() != stateCreated {
		log.Warnf(log.EPCtrl, "bind %s: the endpoint is enabled", what)
		return fi.EOPBADSTATE
	}
	if err := f(); err != nil {
		log.Warnf(log.EPCtrl, "bind %s: %v", what, err)
		return err
	}
	if err := acquire(); err != nil {
		return err
	}
	e.unbind = append(e.unbind, release)
	return nil
}

// BindCQ binds a completion queue for transmits (fi.Transmit), receives
// (fi.Recv) or both, with fi.SelectiveCompletion if only operations that ask
// for it complete. Errors: fi.EDOMAIN, fi.EBADFLAGS, fi.EINVAL when one is bound already,
// fi.EOPBADSTATE.
func (e *Endpoint) BindCQ(q *cq.Queue, flags uint64) error {
	return e.bind("completion queue", retain(q), q.Release, func() error {
		if !e.domain.queues.has(q) {
			return fi.EDOMAIN
		}
		if flags&^(fi.Transmit|fi.Recv|fi.SelectiveCompletion) != 0 || flags&(fi.Transmit|fi.Recv) == 0 {
			return fi.EBADFLAGS
		}
		if flags&fi.Transmit != 0 && e.txCQ != nil || flags&fi.Recv != 0 && e.rxCQ != nil {
			return fi.EINVAL
		}
		selective := flags&fi.SelectiveCompletion != 0
		if flags&fi.Transmit != 0 {
			e.txCQ, e.txSelective = q, selective
		}
		if flags&fi.Recv != 0 {
			e.rxCQ, e.rxSelective = q, selective
		}
		return nil
	})
}

// counterFlags are the directions that a counter can count.
const counterFlags = fi.Send | fi.Recv | fi.Read | fi.Write | fi.RemoteRead | fi.RemoteWrite

// BindCounter binds a counter to directions. Those of one-sided operations are
// accepted and count nothing: the endpoint has none. Errors as of BindCQ.
func (e *Endpoint) BindCounter(c *cq.Counter, flags uint64) error {
	return e.bind("counter", retain(c), c.Release, func() error {
		if !e.domain.queues.has(c) {
			return fi.EDOMAIN
		}
		if flags&^counterFlags != 0 || flags == 0 {
			return fi.EBADFLAGS
		}
		if flags&fi.Send != 0 && e.txCntr != nil || flags&fi.Recv != 0 && e.rxCntr != nil {
			return fi.EINVAL
		}
		if flags&fi.Send != 0 {
			e.txCntr = c
		}
		if flags&fi.Recv != 0 {
			e.rxCntr = c
		}
		return nil
	})
}

// BindAV binds the address vector. Errors: fi.EINVAL for a second one.
func (e *Endpoint) BindAV(a *AV, flags uint64) error {
	return e.bind("address vector", a.refs.acquire, a.refs.release, func() error {
		if a.domain != e.domain {
			return fi.EDOMAIN
		}
		if flags != 0 {
			return fi.EBADFLAGS
		}
		if e.av != nil {
			return fi.EINVAL
		}
		e.av = a
		return nil
	})
}

// BindEQ binds an event queue. A reliable datagram endpoint has no events.
func (e *Endpoint) BindEQ(q *eq.Queue, flags uint64) error {
	return e.bind("event queue", q.Acquire, q.Release, func() error {
		if e.eq != nil {
			return fi.EINVAL
		}
		e.eq = q
		return nil
	})
}

// BindSharedRx makes the endpoint deliver into a shared receive context.
func (e *Endpoint) BindSharedRx(s *SharedRx) error {
	return e.bind("shared receive context", s.refs.acquire, s.refs.release, func() error {
		if e.srx != nil || s.domain != e.domain {
			return fi.EINVAL
		}
		e.srx = s
		return nil
	})
}

// BindSharedTx makes the endpoint use a shared transmit context's attributes.
func (e *Endpoint) BindSharedTx(s *SharedTx) error {
	return e.bind("shared transmit context", s.refs.acquire, s.refs.release, func() error {
		if e.stx != nil {
			return fi.EINVAL
		}
		e.stx = s
		return nil
	})
}

// retain counts a use of a queue or counter, which cannot fail.
func retain(q interface{ Retain() }) func() error {
	return func() error { q.Retain(); return nil }
}
