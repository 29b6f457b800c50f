package provider

import (
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// Counters that are bound to an enabled endpoint. Clients that open an endpoint in one
// layer and count in another bind them so; no transfer of that time has to wait.

// countLate makes an enabled endpoint count with c. The caller has e.mu. What is under way
// is counted if it ends later.
func (e *peering) countLate(c *cq.Counter, flags uint64) error {
	if !slices.Contains(e.bound.attached, queue(c)) {
		if err := e.serveBy(c); err != nil {
			return fi.ErrnoOf(err)
		}
		e.bound.attached = append(e.bound.attached, c)
	}
	r := e.rx.acquire() // no receive and no operation of a peer is in progress
	e.bound.setCounters(c, flags)
	e.bound.fillCounters(e.hot)
	if flags&(fi.RemoteRead|fi.RemoteWrite) != 0 {
		e.hot.Regions = 0 // the data plane finds no region: the runtime serves peers, and counts
	}
	r.give()
	if flags&(fi.RemoteRead|fi.RemoteWrite) != 0 {
		e.withdrawRegions()
	}
	return nil
}

// fillCounters enters the counters of receives and of what this side initiates in the table.
func (e *bindings) fillCounters(h *hot.EP) {
	for _, w := range []struct {
		word *uintptr
		// counter is one of the bindings, which says which threads store and load it.
		counter *atomic.Pointer[cq.Counter]
	}{{&h.TxCntr, &e.txCntr}, {&h.RxCntr, &e.rxCntr}, {&h.WriteCntr, &e.writeCntr}, {&h.ReadCntr, &e.readCntr}} {
		if c := w.counter.Load(); c != nil {
			atomic.StoreUintptr(w.word, addressOf(c.Hot()))
		}
	}
}

// sourceOf returns the endpoint as threads that may sleep on a queue see it, or only poll it. If one can sleep on it
// and on no queue of the endpoint, the endpoint gets its doorbell now. The caller has the lock of the domain's drives.
func (e *peering) sourceOf(q queue) (*cq.Source, error) {
	if !q.Waiter().Waitable() || e.source.FD >= 0 {
		return e.source, nil
	}
	if e.bell == nil {
		if err := e.transports.iface.EnableWait(); err != nil {
			return nil, err
		}
		e.bell = e.newSource()
		if e.transports.unbelled {
			e.bell.HasWork = func() bool { return true } // so no thread sleeps
		}
	}
	return e.bell, nil
}

// driven is an endpoint of which readers of deferred work's counters make progress.
type driven interface {
	drive(*cq.Counter) error
	undrive(*cq.Counter)
}

// drive makes readers of a counter make progress of the endpoint, and undrive takes that back. The caller has the lock
// of the domain's drives.
func (e *peering) drive(c *cq.Counter) error {
	source, err := e.sourceOf(c)
	if err != nil {
		return err
	}
	return c.Drive(e.hot, source)
}

func (e *peering) undrive(c *cq.Counter) {
	if e.bell == nil {
		c.Undrive(e.hot, e.source)
		return
	}
	c.Undrive(e.hot, e.source, e.bell)
}

// withdrawRegions takes the domain's regions out of what peers reach through
// this endpoint by themselves: from now on they must notify it. When it returns, no
// peer is at one.
func (e *peering) withdrawRegions() {
	if p, ok := e.transports.iface.(hw.Publisher); ok {
		p.Withdraw()
	}
	for _, m := range e.domain.regions.All() {
		m.region.Unexport() // other endpoints give new keys
	}
}
