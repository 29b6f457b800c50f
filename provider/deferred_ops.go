package provider

import (
	"runtime"
	"slices"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/deferred"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/vector"
)

// Each kind of operation as work: what can be checked now is, the arguments
// are copied, and posting is the ordinary call.

// transfer sets what all transfers of an endpoint have.
func (w *queuedOp) transfer(e WorkEndpoint, dest fi.Addr, context uint64) {
	w.Backlog, w.Sequence, w.Context = e.receives().backlog(), deferred.Sequence{Owner: e, Dest: dest}, context
}

func (w *queuedOp) prepareSend(e WorkEndpoint, s *SendArgs) error {
	c, to := *s, e.transfers()
	c.Flags &^= fi.Trigger
	if err := to.judgeSend(&c); err != nil {
		return err
	}
	if err := to.addressed("send", c.Dest); err != nil {
		return err
	}
	c.work = w.Completes()
	w.transfer(e, c.Dest, c.Context)
	kept := w.keep(&c.IOV, c.Flags)
	w.Post = func() error {
		defer runtime.KeepAlive(kept)
		return to.send(&c)
	}
	w.Fail = w.failure(e, txEntry(c.Context, c.Tagged), e.common().bound.txCntr.Load(), c.Flags)
	return nil
}

func (w *queuedOp) prepareRMA(e WorkEndpoint, a *RMAArgs) error {
	c, to := *a, e.transfers()
	c.Flags &^= fi.Trigger
	if err := to.judgeRMA(&c); err != nil {
		return err
	}
	if err := to.addressed("operation", c.Dest); err != nil {
		return err
	}
	c.work, c.Remote = w.Completes(), slices.Clone(a.Remote)
	w.transfer(e, c.Dest, c.Context)
	kept := w.keep(&c.IOV, c.Flags)
	w.Post = func() error {
		defer runtime.KeepAlive(kept)
		return to.rma(&c)
	}
	entry := cq.Entry{Context: c.Context, Flags: rma.Kind(c.Read), Src: fi.AddrNotAvail}
	w.Fail = w.failure(e, entry, e.common().bound.accessCntr(entry.Flags), c.Flags)
	return nil
}

func (w *queuedOp) prepareAtomic(e WorkEndpoint, a *AtomicArgs) error {
	c, to := *a, e.transfers()
	c.Flags &^= fi.Trigger
	if err := to.judgeAtomic(&c); err != nil {
		return err
	}
	if err := to.addressed("operation", c.Dest); err != nil {
		return err
	}
	c.work, c.Remote, c.Result = w.Completes(), slices.Clone(a.Remote), slices.Clone(a.Result)
	w.transfer(e, c.Dest, c.Context)
	operands, comparands := w.keep(&c.Operand, c.Flags), w.keep(&c.Compare, c.Flags)
	w.Post = func() error {
		defer runtime.KeepAlive(operands)
		defer runtime.KeepAlive(comparands)
		return to.atomic(&c)
	}
	entry := cq.Entry{Context: c.Context, Flags: fi.Atomic | fi.Write, Src: fi.AddrNotAvail}
	if c.Kind != atomics.Base {
		entry.Flags = fi.Atomic | fi.Read
	}
	w.Fail = w.failure(e, entry, e.common().bound.accessCntr(entry.Flags), c.Flags)
	return nil
}

func (w *queuedOp) prepareRecv(r receiver, a *RecvArgs) error {
	c := *a
	c.Flags &^= fi.Trigger
	if err := r.checkRecv(&c); err != nil {
		return err
	}
	c.work, c.IOV = w.Completes(), slices.Clone(a.IOV)
	w.Backlog, w.Sequence, w.Context = r.backlog(), deferred.Sequence{Owner: r, Dest: fi.AddrUnspec}, c.Context
	w.Post = func() error { return r.postRecv(&c) }
	w.Fail = func(err fi.Errno) { r.failRecv(&c, err) }
	return nil
}

// keep copies a vector, and the bytes behind it if the caller may use them again
// at once: for triggered operations with fi.Inject. It returns those bytes, which
// must live as long as the vector is used.
func (w *queuedOp) keep(iov *[]fi.IOVec, flags uint64) []byte {
	if w.Deferred || flags&fi.Inject == 0 {
		*iov = slices.Clone(*iov)
		return nil
	}
	n := uint64(0)
	for _, v := range *iov {
		n += v.Len
	}
	b := make([]byte, n)
	vector.Gather(b, *iov)
	*iov = nil
	if n != 0 {
		*iov = []fi.IOVec{{Base: uintptr(mem.Address(b)), Len: n}}
	}
	return b
}

// failure returns what reports a transmit that could not be posted.
func (w *queuedOp) failure(e WorkEndpoint, entry cq.Entry, c *cq.Counter, flags uint64) func(fi.Errno) {
	return func(err fi.Errno) {
		e.transfers().refused()
		if q := e.common().bound.txCQ; q != nil {
			q.CompleteError(entry, cq.ErrorInfo{Err: err})
		}
		e.common().countWork(c, w.Completes(), flags&fi.Completion != 0, true, 0)
	}
}

// triggeredSend makes a send wait for its counter.
func (d *Domain) triggeredSend(e WorkEndpoint, s *SendArgs) error {
	w := &queuedOp{deferred.Op{Number: d.work.Number()}}
	if err := d.checkTrigger("send", s.On, e.common().info.Caps); err != nil {
		return err
	}
	if err := w.prepareSend(e, s); err != nil {
		return err
	}
	return d.trigger(w, s.On)
}

// triggeredRMA makes a read or write wait for its counter.
func (d *Domain) triggeredRMA(e WorkEndpoint, a *RMAArgs) error {
	w := &queuedOp{deferred.Op{Number: d.work.Number()}}
	if err := d.checkTrigger("read or write", a.On, e.common().info.Caps); err != nil {
		return err
	}
	if err := w.prepareRMA(e, a); err != nil {
		return err
	}
	return d.trigger(w, a.On)
}

// triggeredAtomic makes an atomic operation wait for its counter.
func (d *Domain) triggeredAtomic(e WorkEndpoint, a *AtomicArgs) error {
	w := &queuedOp{deferred.Op{Number: d.work.Number()}}
	if err := d.checkTrigger("atomic", a.On, e.common().info.Caps); err != nil {
		return err
	}
	if err := w.prepareAtomic(e, a); err != nil {
		return err
	}
	return d.trigger(w, a.On)
}

// triggeredRecv makes a receive wait for its counter. caps are those of where it is posted.
func (d *Domain) triggeredRecv(r receiver, caps uint64, a *RecvArgs) error {
	w := &queuedOp{deferred.Op{Number: d.work.Number()}}
	if err := d.checkTrigger("receive", a.On, caps); err != nil {
		return err
	}
	if err := w.prepareRecv(r, a); err != nil {
		return err
	}
	return d.trigger(w, a.On)
}

// What an Endpoint is as a WorkEndpoint, beside its operations.

func (e *binder) common() *binder { return e }

func (e *Endpoint) receives() receiver { return e.base.rx }

func (e *Endpoint) transfers() transfers { return endpointTransfers{&e.base, e} }

// endpointTransfers are the transfers of an Endpoint: its initiator's, but for reads and writes by mappings.
type endpointTransfers struct {
	*initiator
	e *Endpoint
}

func (t endpointTransfers) rma(a *RMAArgs) error { return t.e.rma(a) }

func (e *initiator) judgeSend(s *SendArgs) error {
	m := s.message()
	_, err := e.checkSend(&m)
	return err
}

func (e *peering) judgeRMA(a *RMAArgs) error {
	op := a.operation()
	_, err := e.checkRMA(&op)
	return err
}

func (e *peering) judgeAtomic(a *AtomicArgs) error {
	op := a.operation()
	_, err := e.checkAtomic(&op)
	return err
}

func (e *initiator) refused() { e.stats.Shared(stats.SharedRefused, 1) }

func (r *rxContext) backlog() *deferred.Backlog { return &r.deferred }
