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
		if all, _ := e.bindFlags(); flags&^all != 0 || flags&(fi.Transmit|fi.Recv) == 0 {
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

// BindCounter binds a counter to directions, each of which has one counter at
// most. Errors as of BindCQ.
func (e *Endpoint) BindCounter(c *cq.Counter, flags uint64) error {
	return e.bind("counter", retain(c), c.Release, func() error {
		if !e.domain.queues.has(c) {
			return fi.EDOMAIN
		}
		if _, all := e.bindFlags(); flags&^all != 0 || flags == 0 {
			return fi.EBADFLAGS
		}
		for _, d := range e.directions() {
			if flags&d.bit != 0 && *d.counter != nil {
				return fi.EINVAL
			}
		}
		for _, d := range e.directions() {
			if flags&d.bit != 0 {
				*d.counter = c
			}
		}
		return nil
	})
}

// direction is what a counter may count, and its place.
type direction struct {
	bit     uint64
	counter **cq.Counter
}

func (e *Endpoint) directions() [6]direction {
	return [...]direction{
		{fi.Send, &e.txCntr}, {fi.Recv, &e.rxCntr}, {fi.Read, &e.readCntr}, {fi.Write, &e.writeCntr},
		{fi.RemoteRead, &e.remoteReadCntr}, {fi.RemoteWrite, &e.remoteWriteCntr},
	}
}

// BindAV binds the address vector. Errors: fi.EINVAL for a second one.
func (e *Endpoint) BindAV(a *AV, flags uint64) error {
	return e.bind("address vector", a.refs.acquire, a.refs.release, func() error {
		if e.scalable != nil {
			return fi.EINVAL // it has its scalable endpoint's
		}
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
		if e.scalable != nil || e.srx != nil || s.domain != e.domain {
			return fi.EINVAL
		}
		e.srx = s
		return nil
	})
}

// BindSharedTx makes the endpoint use a shared transmit context's attributes.
func (e *Endpoint) BindSharedTx(s *SharedTx) error {
	return e.bind("shared transmit context", s.refs.acquire, s.refs.release, func() error {
		if e.scalable != nil || e.stx != nil {
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
