package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/deferred"
	"github.com/weft-fabric/weft/provider/internal/links"
)

// What libfabric's objects add to operations that wait for a counter (fi_trigger(3)): package deferred has them queued,
// posted and ended. Deferred work is counted by its own counter and not by the endpoint's queue and counters, unless it
// has fi.Completion.

// Threshold is what an operation waits for: that a counter reaches a value.
type Threshold struct {
	Counter *cq.Counter
	Value   uint64
}

// Work is deferred work (struct fi_deferred_work): one operation, which is the
// one of Send, Recv, RMA, Atomic and Counter that is not nil. What these refer
// to is copied when it is queued, but for the data.
type Work struct {
	On   Threshold   // of value and error value together
	Done *cq.Counter // counts the operation's end, nil: nothing does
	User uint64      // by which the application names it

	EP     WorkEndpoint // of transfers
	Send   *SendArgs
	Recv   *RecvArgs
	RMA    *RMAArgs
	Atomic *AtomicArgs

	Counter *cq.Counter // set to Value, or with Add advanced by it
	Value   uint64
	Add     bool
}

// WorkEndpoint is an endpoint whose operations may wait for counters, as triggered operations or as deferred work: an
// Endpoint or a MatchedEndpoint.
type WorkEndpoint interface {
	Domain() *Domain
	common() *binder
	receives() receiver
	transfers() transfers
}

// transfers are the operations of an endpoint, beside its receives, as work has them.
type transfers interface {
	// Errors of posting that can be known before.
	judgeSend(*SendArgs) error
	judgeRMA(*RMAArgs) error
	judgeAtomic(*AtomicArgs) error
	addressed(what string, a fi.Addr) error
	// The operations, which do not wait.
	send(*SendArgs) error
	rma(*RMAArgs) error
	atomic(*AtomicArgs) error
	refused() // counts one that could not be posted
}

// receiver is where receives that wait for counters are posted: a receive context, or an endpoint that has none.
type receiver interface {
	backlog() *deferred.Backlog
	checkRecv(*RecvArgs) error
	postRecv(*RecvArgs) error
	failRecv(*RecvArgs, fi.Errno) // reports one that could not be posted
}

// queuedOp is an operation that is prepared for the queue.
type queuedOp struct{ deferred.Op }

// triggers reports whether the domain's operations may wait for counters.
func (d *Domain) triggers() bool { return d.info.Caps&fi.Trigger != 0 }

// checkTrigger reports whether a threshold and the endpoint's or shared context's
// capabilities are good for an operation that waits.
func (d *Domain) checkTrigger(what string, on Threshold, caps uint64) error {
	switch {
	case !d.triggers() || caps&fi.Trigger == 0:
		return refuse(log.EPData, fi.EBADFLAGS, "%s: FI_TRIGGER on an endpoint without that capability", what)
	case on.Counter == nil:
		return refuse(log.EPData, fi.EINVAL, "%s: no counter to wait for", what)
	case !d.queues.Has(on.Counter):
		return refuse(log.EPData, fi.EDOMAIN, "%s: the counter is not the domain's", what)
	}
	return nil
}

// addressed returns an error if an address is not in the endpoint's vector.
func (e *peering) addressed(what string, a fi.Addr) error {
	if e.conn != nil {
		return nil // its peer is the only one
	}
	if !links.Leads(e.bound.av, a) {
		return log.Reject(log.EPData, fi.EINVAL, "%s to address %d: not in the address vector", what, a)
	}
	return nil
}

// trigger queues a triggered operation.
func (d *Domain) trigger(w *queuedOp, on Threshold) error {
	w.User, w.On, w.At = w.Context, on.Counter, on.Value
	d.work.Add(&w.Op)
	return nil
}

// QueueWork queues deferred work; it is posted at once if its counter has
// reached the threshold. Errors: fi.EINVAL for no operation or a field that is
// not valid, fi.EDOMAIN for objects of another domain, fi.ENOSYS for what cannot
// be deferred (a domain or endpoint without fi.Trigger; multi-receive buffers,
// peeks and claims), and those of posting that can be known now.
func (d *Domain) QueueWork(w *Work) error {
	if !d.triggers() {
		return refuse(log.Domain, fi.ENOSYS, "queue work: the domain was opened without FI_TRIGGER")
	}
	for _, c := range []struct {
		what    string
		counter *cq.Counter
		needed  bool
	}{
		{"triggering", w.On.Counter, true}, {"completion", w.Done, false}, {"operation's", w.Counter, w.EP == nil},
	} {
		switch {
		case c.counter == nil && c.needed:
			return refuse(log.Domain, fi.EINVAL, "queue work: no %s counter", c.what)
		case c.counter != nil && !d.queues.Has(c.counter):
			return refuse(log.Domain, fi.EDOMAIN, "queue work: the %s counter is not the domain's", c.what)
		}
	}
	q := &queuedOp{deferred.Op{Deferred: true, User: w.User, On: w.On.Counter, At: w.On.Value, Done: w.Done,
		Number: d.work.Number()}}
	if err := d.prepare(q, w); err != nil {
		return err
	}
	for _, c := range []*cq.Counter{w.On.Counter, w.Done, w.Counter} {
		if c == nil {
			continue
		}
		if err := d.drives.Drive(c); err != nil {
			return refuse(log.Domain, fi.ErrnoOf(err), "queue work: %v", err)
		}
	}
	d.work.Add(&q.Op)
	return nil
}

// prepare fills in what the kind of operation asks for.
func (d *Domain) prepare(q *queuedOp, w *Work) error {
	if w.EP == nil {
		return d.prepareCounter(q, w)
	}
	e := w.EP.common()
	switch {
	case e.domain != d:
		return refuse(log.Domain, fi.EDOMAIN, "queue work: the endpoint is not the domain's")
	case e.info.Caps&fi.Trigger == 0:
		return refuse(log.Domain, fi.ENOSYS, "queue work: the endpoint was opened without FI_TRIGGER")
	case e.state.Load() != stateEnabled:
		return refuse(log.Domain, fi.EOPBADSTATE, "queue work: the endpoint is not enabled")
	}
	switch {
	case w.Send != nil:
		return q.prepareSend(w.EP, w.Send)
	case w.Recv != nil:
		if odd := w.Recv.Flags & (fi.MultiRecv | fi.Peek | fi.Claim | fi.Discard); odd != 0 {
			return refuse(log.Domain, fi.ENOSYS, "queue work: receives with flags %#x are not deferred", odd)
		}
		return q.prepareRecv(w.EP.receives(), w.Recv)
	case w.RMA != nil:
		return q.prepareRMA(w.EP, w.RMA)
	case w.Atomic != nil:
		return q.prepareAtomic(w.EP, w.Atomic)
	}
	return refuse(log.Domain, fi.EINVAL, "queue work: no operation")
}

func (d *Domain) prepareCounter(q *queuedOp, w *Work) error {
	if w.Done != nil {
		return refuse(log.Domain, fi.EINVAL, "queue work: an operation on a counter has no completion counter")
	}
	d.work.Changes(&q.Op, w.Counter, w.Value, w.Add)
	return nil
}

// CancelWork takes back the work that the application names so, as far as it was
// not posted yet. fi.ENOENT: there is none.
func (d *Domain) CancelWork(user uint64) error {
	if len(d.work.Withdraw(func(w *deferred.Op) bool { return w.Deferred && w.User == user })) == 0 {
		return fmt.Errorf("no such work waits: %w", fi.ENOENT)
	}
	return nil
}

// FlushWork takes back all deferred work that was not posted yet, or that which
// waits for a counter.
func (d *Domain) FlushWork(on *cq.Counter) error {
	if on != nil && !d.queues.Has(on) {
		return refuse(log.Domain, fi.EDOMAIN, "flush work: the counter is not the domain's")
	}
	d.work.Withdraw(func(w *deferred.Op) bool { return w.Deferred && (on == nil || w.On == on) })
	return nil
}
