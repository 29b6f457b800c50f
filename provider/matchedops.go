package provider

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/matched"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/receive"
)

// matchedBatch is how many events one call of progress takes in.
const matchedBatch = 64

// enabled is the endpoint's transfers. Errors: fi.EOPBADSTATE.
func (e *MatchedEndpoint) enabled() (*matched.Endpoint, error) {
	if e.state.Load() != stateEnabled {
		return nil, fi.EOPBADSTATE
	}
	return e.transfer.Load(), nil
}

// posts is what enabled is, for an operation with flags. Errors: fi.EINVAL for fi.Fence without the capability, as
// libfabric's provider has it.
func (e *MatchedEndpoint) posts(flags uint64) (*matched.Endpoint, error) {
	if flags&fi.Fence != 0 && e.info.Caps&fi.Fence == 0 {
		return nil, refuse(log.EPData, fi.EINVAL, "FI_FENCE: the endpoint has not the capability")
	}
	t, err := e.enabled()
	if err == nil {
		e.stats.Shared(stats.SharedMatchPosts, 1)
	}
	return t, err
}

// Send posts one message, with fi.Trigger when a counter reaches a value. Errors as of matched.Endpoint.Send,
// fi.EOPBADSTATE, and fi.EINVAL for fi.Fence without the capability.
func (e *MatchedEndpoint) Send(s *SendArgs) error {
	if s.Flags&fi.Trigger != 0 {
		return e.domain.triggeredSend(e, s)
	}
	return e.send(s)
}

func (e *MatchedEndpoint) send(s *SendArgs) error {
	t, err := e.posts(s.Flags)
	if err != nil {
		return err
	}
	m := matchedSend(s)
	return t.Send(&m)
}

// matchedSend is a send as package matched has it.
func matchedSend(s *SendArgs) matched.Send {
	m := matched.Send{
		IOV: s.IOV, Dest: s.Dest, Tag: s.Tag, Data: s.Data, Flags: s.Flags, Context: s.Context, Tagged: s.Tagged,
		HasData: s.HasData, Inject: s.Inject,
	}
	asWork(s.work, &m.Context, &m.Flags)
	return m
}

// RMA posts a read or write, with fi.Trigger when a counter reaches a value. Errors as of matched.Endpoint.Transfer and
// Send, and fi.EOPNOTSUPP for an endpoint without the capability.
func (e *MatchedEndpoint) RMA(a *RMAArgs) error {
	if a.Flags&fi.Trigger != 0 {
		return e.domain.triggeredRMA(e, a)
	}
	return e.rma(a)
}

func (e *MatchedEndpoint) rma(a *RMAArgs) error {
	t, m, err := e.matchedTransfer(a)
	if err != nil {
		return err
	}
	return t.Transfer(&m)
}

// matchedTransfer is a read or write as package matched has it, and where it is posted. Errors as of RMA.
func (e *MatchedEndpoint) matchedTransfer(a *RMAArgs) (t *matched.Endpoint, m matched.Transfer, err error) {
	if t, err = e.posts(a.Flags); err != nil {
		return nil, m, err
	}
	m = matched.Transfer{
		IOV: a.IOV, Remote: a.Remote, Dest: a.Dest, Data: a.Data, Flags: a.Flags, Context: a.Context,
		Read: a.Read, HasData: a.HasData, Inject: a.Inject,
	}
	asWork(a.work, &m.Context, &m.Flags)
	return t, m, nil
}

// PostRecv posts a receive, with fi.Trigger when a counter reaches a value. Errors as of matched.Endpoint.Receive, and
// fi.EOPBADSTATE; but that no message is claimed is an error of the queue.
func (e *MatchedEndpoint) PostRecv(a *RecvArgs) error {
	if a.Flags&fi.Trigger != 0 {
		return e.domain.triggeredRecv(e, e.info.Caps, a)
	}
	return e.postRecv(a)
}

func (e *MatchedEndpoint) postRecv(a *RecvArgs) error {
	t, err := e.posts(0)
	if err != nil {
		return err
	}
	m := matchedReceive(a)
	err = t.Receive(&m)
	if errors.Is(err, fi.ENOMSG) { // as of endpoints whose searches are made later
		e.failRecv(a, fi.ENOMSG)
		return nil
	}
	return err
}

// matchedReceive is a receive as package matched has it.
func matchedReceive(a *RecvArgs) matched.Receive {
	m := matched.Receive{
		IOV: a.IOV, Src: a.Src, Tag: a.Tag, Ignore: a.Ignore,
		Flags: a.Flags, Context: a.Context, Tagged: a.Tagged,
	}
	asWork(a.work, &m.Context, &m.Flags)
	return m
}

// Cancel asks for the end of the oldest receive that was posted with context, or ends the triggered operations that
// wait with it.
func (e *MatchedEndpoint) Cancel(context uint64) error {
	t, err := e.enabled()
	if err != nil {
		return err
	}
	if e.domain.work.CancelTriggered(context, e) {
		return nil
	}
	e.gate.Share()
	defer e.gate.Unshare()
	return t.Cancel(e.domain.work.PostedAs(e, context))
}

// PostRoom is how many operations there is room for, 0 before Enable.
func (e *MatchedEndpoint) PostRoom() uint64 {
	t, err := e.enabled()
	if err != nil {
		return 0
	}
	return uint64(t.Room())
}

// LeasedMatched is a matched endpoint as C's callbacks that have its progress lease name it.
type LeasedMatched = leasedMatched

// Leased is the endpoint for a callback of C, which has taken the lease before.
func (e *MatchedEndpoint) Leased() *LeasedMatched { return e.leased.Taken() }

// Progress makes progress. It returns whether Triggered is to be called.
func (l *leasedMatched) Progress() bool {
	l.progress()
	return l.e.domain.work.Ready()
}

// progress reports whether there was something to do.
func (l *leasedMatched) progress() bool {
	t := l.e.transfer.Load()
	if t == nil || l.dead {
		return false
	}
	l.calls++
	l.e.stats.Rx(stats.RxMatchProgress, 1)
	worked := t.Progress(matchedBatch)
	l.groups.Pump()
	if worked || l.calls%matchedBatch == 0 {
		l.sample(t)
	}
	l.e.setAttention(l)
	return worked
}

// setAttention says to C whether Go has something to do that the interface does not show. Lease, or Enable.
func (e *MatchedEndpoint) setAttention(l *leasedMatched) {
	attention := uint32(hot.AttentionTransports)
	if e.hot.Transport == 0 || e.transfer.Load().Busy() || !e.waiting.Empty() || l.groups.Busy() {
		attention |= hot.AttentionGo
	}
	atomic.StoreUint32(&e.rx.Attention, attention)
	if !e.waiting.Empty() || e.coll != nil && e.coll.Requested() {
		// It may have come between: the other thread counts before it stores the word.
		e.notify()
	}
}

// notify has the next reader, or the progress thread, enter Go.
func (e *MatchedEndpoint) notify() {
	atomic.StoreUint32(&e.rx.Attention, hot.AttentionTransports|hot.AttentionGo)
	if t := e.driver.thread.Load(); t != nil {
		t.Bell().RingAsleep()
	}
}

// Housekeeping shows the counters of an endpoint at which nothing else happens.
func (l *leasedMatched) Housekeeping() bool {
	if t := l.e.transfer.Load(); t != nil && !l.dead {
		l.sample(t)
	}
	return false
}

// Triggered posts what counters have triggered in the domain.
func (e *MatchedEndpoint) Triggered() { e.domain.work.PostReady() }

// MatchedEvent takes in an event that the data plane has left to it. True: it has triggered operations, which Triggered
// posts.
func (l *leasedMatched) MatchedEvent(ev *hot.MatchEvent) bool {
	if !l.dead {
		l.e.stats.Rx(stats.RxMatchProgress, 1)
		l.e.transfer.Load().MatchedEvent(ev)
	}
	return l.e.domain.work.Ready()
}

// TakeBack takes an operation back that the data plane has begun, and the device has not taken (hot.PostReturn).
func (e *MatchedEndpoint) TakeBack(p *hot.Post) {
	if t := e.transfer.Load(); t != nil {
		t.TakeBack(p)
	}
}

// Deliver writes a completion for which the data plane has found no room. The caller, C, has taken the lease.
func (e *MatchedEndpoint) Deliver(d *hot.Delivery) {
	q := e.bound.txCQ
	if d.Entry.Flags&fi.Recv != 0 {
		q = e.bound.rxCQ
	}
	q.Complete(receive.EntryOf(&d.Entry))
}

// Advance makes progress, unless another thread does.
func (e *MatchedEndpoint) Advance() {
	if l := e.leased.Take(); l != nil {
		l.progress()
		e.leased.Give()
		e.domain.work.PostReady()
	}
}

// awaitTime bounds how long the device may take for what a control operation waits for.
const awaitTime = 20 * time.Second

// await makes progress until done holds. Errors: fi.ETIMEDOUT.
func (e *MatchedEndpoint) await(done func() bool) error {
	for end := time.Now().Add(awaitTime); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			return fmt.Errorf("no answer of the device within %v: %w", awaitTime, fi.ETIMEDOUT)
		}
		e.Advance()
	}
	return nil
}

// reports is where the end of an operation is reported: the queue, the counter, and whether a success completes. work
// is its number if it was deferred, else 0.
func (l *leasedMatched) reports(n *matched.Ended, work uint64) (q *cq.Queue, c *cq.Counter, completes bool) {
	e := l.e
	switch {
	case n.Receive:
		return e.bound.rxCQ, e.bound.rxCntr.Load(),
			!e.bound.rxSelective && work == 0 || n.Flags&fi.Completion != 0 || n.Entry.Flags&fi.MultiRecv != 0
	case n.Entry.Flags&fi.RemoteWrite != 0:
		return e.bound.rxCQ, nil, true
	case n.Entry.Flags&(fi.Read|fi.Write) != 0:
		c = e.bound.accessCntr(n.Entry.Flags)
	default:
		c = e.bound.txCntr.Load()
	}
	return e.bound.txCQ, c, !n.Inject && e.bound.txCompletes(work, n.Flags)
}

// ended takes in what has become of an operation.
func (l *leasedMatched) ended(n *matched.Ended) {
	e := l.e
	l.count(n)
	work := l.workIn(n)
	q, c, completes := l.reports(n, work)
	failure := cq.ErrorInfo{Err: n.Err, OLen: n.OLen}
	if n.Err == fi.Success && len(n.Name) != 0 && e.info.Caps&fi.SourceErr != 0 {
		failure.Err, failure.ErrData = fi.EADDRNOTAVAIL, n.Name
		if len(e.peers.Keys) != 0 { // fi_cq(3): the key, in place of the address
			n.Entry.Src = uint64(e.bound.av.ReportedKey(e.peers.KeyOf(n.From)))
		}
	}
	switch {
	case failure.Err != fi.Success && q != nil:
		q.CompleteError(receive.EntryOf(&n.Entry), failure)
	case failure.Err == fi.Success && completes && q != nil:
		q.Complete(receive.EntryOf(&n.Entry))
	}
	if !n.Search {
		e.countWork(c, work, n.Flags&fi.Completion != 0, failure.Err != fi.Success, n.Bytes)
	}
}
