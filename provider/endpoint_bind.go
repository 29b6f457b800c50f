package provider

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/refs"
)

// binding is an object on its way to an endpoint.
type binding struct {
	what    string
	acquire func() error
	release func()
	// check says why it cannot be bound, whether or not the endpoint is enabled; set binds it.
	check func() error
	set   func()
	// late does for an enabled endpoint what Enable does with what was bound before, and set. nil:
	// it is too late then.
	late func() error
}

// bindings are the objects that an endpoint is bound to, and what follows from them. Written under the endpoint's mu
// until Enable and by Close, immutable between, but for what says otherwise.
type bindings struct {
	av                       *AV
	txCQ, rxCQ               *cq.Queue
	txSelective, rxSelective bool
	// Counters of sends and receives, of what this side initiates, and of what peers do to
	// this side's memory. Each is stored once, by BindCounter, perhaps after Enable, and read by
	// any thread; sequentially consistent.
	txCntr, rxCntr                  atomic.Pointer[cq.Counter]
	readCntr, writeCntr             atomic.Pointer[cq.Counter]
	remoteReadCntr, remoteWriteCntr atomic.Pointer[cq.Counter]
	// eq is stored by BindEQ, perhaps after Enable, and read by any thread; sequentially consistent.
	eq       atomic.Pointer[eq.Queue]
	srx      *SharedRx
	stx      *SharedTx
	undo     struct{ binds, calls []func() } // the binds, last first; what the address vector calls; under mu
	attached []queue                         // that poll this endpoint; under mu
}

// binder is what endpoints of all kinds have in common: attributes, objects that they are bound to, and the state that
// says whether there may be more of those.
type binder struct {
	attributes
	// mu serialises bind, enable, setname and close. It is not on the data path.
	mu    sync.Mutex
	state atomic.Uint32 // written under mu, read by any thread
	refs  refs.Count
	bound bindings
}

// bind binds an object, unless it is too late for it, and counts a use of it.
func (e *binder) bind(b *binding) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.tryBind(b, e.state.Load() != stateCreated)
	if err != nil {
		log.Warnf(log.EPCtrl, "bind %s: %v", b.what, err)
	}
	return err
}

func (e *binder) tryBind(b *binding, enabled bool) error {
	if e.state.Load() == stateClosed {
		return fi.EBADF
	}
	if err := b.check(); err != nil {
		return err
	}
	if enabled && b.late == nil {
		return fmt.Errorf("the endpoint is enabled: %w", fi.EOPBADSTATE)
	}
	if err := b.acquire(); err != nil {
		return err
	}
	if !enabled {
		b.set()
	} else if err := b.late(); err != nil {
		b.release()
		return err
	}
	e.bound.undo.binds = append(e.bound.undo.binds, b.release)
	return nil
}

// BindCQ binds a completion queue for transmits (fi.Transmit), receives
// (fi.Recv) or both, with fi.SelectiveCompletion if only operations that ask
// for it complete. Errors: fi.EDOMAIN, fi.EBADFLAGS, fi.EINVAL when one is bound already,
// fi.EOPBADSTATE after Enable.
func (e *binder) BindCQ(q *cq.Queue, flags uint64) error {
	return e.bind(&binding{what: "completion queue", acquire: retain(q), release: q.Release,
		check: func() error {
			if !e.domain.queues.Has(q) {
				return fi.EDOMAIN
			}
			if all, _ := e.bindFlags(); flags&^all != 0 || flags&(fi.Transmit|fi.Recv) == 0 {
				return fmt.Errorf("flags %#x: %w", flags, fi.EBADFLAGS)
			}
			if flags&fi.Transmit != 0 && e.bound.txCQ != nil || flags&fi.Recv != 0 && e.bound.rxCQ != nil {
				return errBound
			}
			return nil
		},
		set: func() {
			selective := flags&fi.SelectiveCompletion != 0
			if flags&fi.Transmit != 0 {
				e.bound.txCQ, e.bound.txSelective = q, selective
			}
			if flags&fi.Recv != 0 {
				e.bound.rxCQ, e.bound.rxSelective = q, selective
			}
		}})
}

// errBound refuses a second object where one is possible.
var errBound = fmt.Errorf("one is bound already: %w", fi.EINVAL)

// BindCounter binds a counter to directions, each of which has one counter at
// most. After Enable, too: then it counts what ends from now on. Errors: fi.EDOMAIN,
// fi.EBADFLAGS, fi.EINVAL for a direction that has a counter; after Enable those of a
// doorbell that a counter with a wait object needs.
func (e *Endpoint) BindCounter(c *cq.Counter, flags uint64) error {
	return e.base.bindCounter(c, flags, func() error { return e.base.scalable.countLate(e, c, flags) })
}

// bindCounter is BindCounter, where late does for an enabled endpoint what is to be done, nil: it is too late then.
func (e *binder) bindCounter(c *cq.Counter, flags uint64, late func() error) error {
	return e.bind(&binding{what: "counter", acquire: retain(c), release: c.Release,
		check: func() error {
			if !e.domain.queues.Has(c) {
				return fi.EDOMAIN
			}
			if _, all := e.bindFlags(); flags&^all != 0 || flags == 0 {
				return fmt.Errorf("flags %#x: %w", flags, fi.EBADFLAGS)
			}
			for _, d := range e.bound.directions() {
				if flags&d.bit != 0 && d.counter.Load() != nil {
					return fmt.Errorf("direction %#x: %w", d.bit, errBound)
				}
			}
			return nil
		},
		set:  func() { e.bound.setCounters(c, flags) },
		late: late,
	})
}

func (e *bindings) setCounters(c *cq.Counter, flags uint64) {
	for _, d := range e.directions() {
		if flags&d.bit != 0 {
			d.counter.Store(c)
		}
	}
}

// direction is what a counter may count, and its place.
type direction struct {
	bit uint64
	// counter is one of the bindings, which says which threads store and load it.
	counter *atomic.Pointer[cq.Counter]
}

func (e *bindings) directions() [6]direction {
	return [...]direction{
		{fi.Send, &e.txCntr}, {fi.Recv, &e.rxCntr}, {fi.Read, &e.readCntr}, {fi.Write, &e.writeCntr},
		{fi.RemoteRead, &e.remoteReadCntr}, {fi.RemoteWrite, &e.remoteWriteCntr},
	}
}

// BindAV binds the address vector. Errors: fi.EDOMAIN, fi.EBADFLAGS, fi.EINVAL for a
// second one, fi.EOPBADSTATE after Enable.
func (e *binder) BindAV(a *AV, flags uint64) error {
	return e.bind(&binding{what: "address vector", acquire: a.Acquire, release: a.Release,
		check: func() error {
			switch {
			case e.scalable != nil:
				return fmt.Errorf("a context has its scalable endpoint's: %w", fi.EINVAL)
			case a.Owner() != e.domain:
				return fi.EDOMAIN
			case flags != 0:
				return fmt.Errorf("flags %#x: %w", flags, fi.EBADFLAGS)
			case e.bound.av != nil:
				return errBound
			}
			return nil
		},
		set: func() { e.bound.av = a }})
}

// BindEQ binds an event queue, at any time, in place of one that was bound before:
// what happens from now on is reported there. Flags mean nothing.
func (e *binder) BindEQ(q *eq.Queue, flags uint64) error { return e.bindEQ(q, q.Release) }

// BindEQ binds an event queue as that of other endpoints. Unread events of a connection are removed from each queue
// when the endpoint is closed.
func (e *Endpoint) BindEQ(q *eq.Queue, flags uint64) error {
	return e.base.bindEQ(q, func() {
		if e.base.conn != nil {
			q.Forget(e.base.conn.fid)
		}
		q.Release()
	})
}

func (e *binder) bindEQ(q *eq.Queue, release func()) error {
	set := func() { e.bound.eq.Store(q) }
	return e.bind(&binding{what: "event queue", acquire: q.Acquire, release: release,
		check: func() error { return nil }, set: set, late: func() error { set(); return nil }})
}

// BindSharedRx makes the endpoint deliver into a shared receive context. Errors: fi.EINVAL
// for a second one, one of another domain and a context of a scalable endpoint, fi.EOPBADSTATE
// after Enable.
func (e *Endpoint) BindSharedRx(s *SharedRx) error {
	return e.base.bind(&binding{what: "shared receive context", acquire: s.refs.Acquire, release: s.refs.Release,
		check: func() error {
			if e.base.bound.srx != nil {
				return errBound
			}
			if e.base.scalable != nil || s.domain != e.base.domain {
				return fi.EINVAL
			}
			return nil
		},
		set: func() { e.base.bound.srx = s }})
}

// BindSharedTx makes the endpoint use a shared transmit context's attributes: its message order
// beside the endpoint's own. After Enable the order is settled. Errors: fi.EINVAL for a second
// one, a context of a scalable endpoint, and after Enable an order that the endpoint does not keep;
// fi.EBADF for a closed one. The context may be closed before the endpoint.
func (e *Endpoint) BindSharedTx(s *SharedTx) error {
	set := func() { e.base.bound.stx = s }
	return e.base.bind(&binding{what: "shared transmit context", acquire: s.open, release: func() {},
		check: func() error {
			if e.base.bound.stx != nil {
				return errBound
			}
			if e.base.scalable != nil {
				return fi.EINVAL
			}
			return nil
		},
		set: set,
		late: func() error {
			if more := s.attr.MsgOrder &^ (e.base.msgOrder | fi.OrderSAS); more != 0 {
				return fmt.Errorf("message order %#x: %w", more, fi.EINVAL)
			}
			set()
			return nil
		}})
}

// retain counts a use of a queue or counter, which cannot fail.
func retain(q interface{ Retain() }) func() error {
	return func() error { q.Retain(); return nil }
}
