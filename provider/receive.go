package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/receive"
	"github.com/weft-fabric/weft/provider/internal/wire"
	"github.com/weft-fabric/weft/provider/names"
)

// Messages that come in are package receive's, as far as the data plane leaves them to the runtime. Here is the
// endpoint as they have it.

// openReceive gives an endpoint that is about to be enabled what it receives messages by.
func (e *leasedEP) openReceive() {
	b := &e.ep.base
	e.received.Open(&receive.Resources{
		Context: &e.rx.matching, Rendezvous: &e.rendezvous, Counts: &b.counts, Hot: b.hot, Lossy: b.chosen.lossy,
		SourceErr: b.info.Caps&fi.SourceErr != 0,
	})
}

// receiveHost is an endpoint as its messages that come in have it.
type receiveHost struct{ leasedHost }

// Sender returns the sender behind a source.
func (h receiveHost) Sender(src hw.Source) sender { return h.e.senderOf(src) }

// Known returns the sender behind a source if it has been met.
func (h receiveHost) Known(src hw.Source) (sender, bool) { return h.e.senders.Known(src) }

// Name names a sender.
func (h receiveHost) Name(s sender) fmt.Stringer { return h.e.rx.addressOf(s) }

// FillBack has the data plane answer a sender.
func (h receiveHost) FillBack(src hw.Source) { h.e.fillBack(src) }

// Answer sends a message to the sender behind a source.
func (h receiveHost) Answer(src hw.Source, to sender, id hw.AMID, header uint64, head []byte) {
	h.e.rx.answer(h.e, src, to, id, header, head)
}

// Postpone has a transport bring a message again.
func (h receiveHost) Postpone(src hw.Source) { h.e.ep.base.links.Transports().Postpone(src) }

// TakeIn takes in all that has arrived.
func (h receiveHost) TakeIn() { h.e.arrivals(h.e.rx.base.cfg.RingSlots*hot.RxRings, true) }

// SetWindow opens or closes the eager window.
func (h receiveHost) SetWindow(open bool) { h.e.ep.base.links.Transports().SetEagerWindow(open) }

// AddrOf returns the address of an identity.
func (h receiveHost) AddrOf(id uint32) fi.Addr { return h.e.addrOf(id) }

// Stranger is what completions say of a peer that is not in the AV: its
// address, and its authorisation key if the AV has keys, as FI_SOURCE_ERR asks.
func (h receiveHost) Stranger(id uint32) (src fi.Addr, raw []byte) {
	name := h.e.rx.ids.Name(id)
	raw, err := names.Encode(h.e.ep.base.format, name)
	if err != nil {
		raw = nil
	}
	return h.e.ep.base.bound.av.ReportedKey(name.Key), raw
}

// Complete completes a receive.
func (h receiveHost) Complete(entry cq.Entry, flags uint64) { h.e.ep.base.completeRecv(entry, flags) }

// Fail completes a receive that failed.
func (h receiveHost) Fail(entry cq.Entry, flags uint64, info cq.ErrorInfo) {
	h.e.ep.base.recvError(entry, flags, info)
}

// Put writes a completion that is counted already.
func (h receiveHost) Put(entry cq.Entry) { h.e.ep.base.bound.rxCQ.Complete(entry) }

// Act does what the data plane has left to do after completions.
func (h receiveHost) Act(todo uint32) { h.e.ep.base.bound.act(todo) }

// Translate makes the addresses of a vector those of the regions that descs name.
func (h receiveHost) Translate(iov []fi.IOVec, descs []uint64) error {
	return h.e.ep.base.domain.Translate(iov, descs)
}

// act does what the data plane left to do after completions (hot.Todo*).
func (e *bindings) act(todo uint32) {
	if todo&hot.TodoWakeCQ != 0 {
		e.rxCQ.Wake()
	}
	if todo&hot.TodoWakeCntr != 0 {
		e.rxCntr.Load().Wake()
	}
	if todo&hot.TodoWakeTxCQ != 0 {
		e.txCQ.Wake()
	}
	if todo&hot.TodoWakeTxCntr != 0 {
		e.txCntr.Load().Wake()
	}
	if todo&hot.TodoWakeReadCntr != 0 {
		e.readCntr.Load().Wake()
	}
	if todo&hot.TodoWakeWriteCntr != 0 {
		e.writeCntr.Load().Wake()
	}
}

// Act does what the data plane has left to do after completions.
func (e *leasedEP) Act(todo uint32) { e.ep.base.bound.act(todo) }

// Serve does what a delivery by the data plane asks of the runtime by a code.
func (e *leasedEP) Serve(d *hot.Delivery, code uintptr) { e.rx.Serve(&e.ep, d, code) }

// Serve does what a delivery to an endpoint asks of the runtime by a code: it takes an ACK, gives a message to the
// receive that it has matched, writes the completion that the queue's ring has no room for, sends the ACK or word of
// the success of a request, or keeps it until there is room, or rings the doorbell of a peer.
func (r *leasedRx) Serve(e *Endpoint, d *hot.Delivery, code uintptr) {
	to := e.leased.Of(r)
	switch code {
	case hot.DeliveryAckReceived:
		outcome, ok := wire.AckStatus(d.Data)
		to.sent.Acknowledged(hw.Source(d.Source), d.Request, outcome, ok)
	case hot.DeliverySettle:
		to.received.Settle(d)
	case hot.DeliveryComplete:
		e.base.bound.rxCQ.Complete(receive.EntryOf(&d.Entry))
	case hot.DeliverySendAck:
		to.received.Acknowledge(hw.Source(d.Source), d.Request)
		r.sendSoon()
	case hot.DeliverySendDone:
		to.target.Done(hw.Source(d.Source), d.Request)
		r.sendSoon()
	case hot.DeliveryWakePeer:
		e.WakePeer(d.Peer)
	}
}

// completeRecv completes a receive that was posted with flags.
func (e *initiator) completeRecv(entry cq.Entry, flags uint64) {
	work, bound := e.domain.workIn(&entry, flags), &e.bound
	if bound.rxCQ != nil && (!bound.rxSelective && work == 0 || flags&(fi.Completion|fi.MultiRecv) != 0) {
		bound.rxCQ.Complete(entry)
	}
	e.countWork(bound.rxCntr.Load(), work, flags&fi.Completion != 0, false, entry.Len)
}

// recvError reports a receive that was posted with flags and failed.
func (e *initiator) recvError(entry cq.Entry, flags uint64, info cq.ErrorInfo) {
	e.counts.Failed(info.Err)
	work := e.domain.workIn(&entry, flags)
	if e.bound.rxCQ != nil {
		e.bound.rxCQ.CompleteError(entry, info)
	}
	e.countWork(e.bound.rxCntr.Load(), work, flags&fi.Completion != 0, true, 0)
}

// workIn returns the number of the deferred work that a receive with flags is,
// 0 if it is none, and puts its context in the place of the number.
func (d *Domain) workIn(entry *cq.Entry, flags uint64) uint64 {
	if flags&hot.RecvWork == 0 {
		return 0
	}
	work := entry.Context
	entry.Context = d.work.ContextOf(work)
	return work
}
