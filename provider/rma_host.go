package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/ordering"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
	"github.com/weft-fabric/weft/provider/internal/rma"
)

// One-sided operations at their initiator are package rma's. Here is the endpoint as they have it.

// initRMA prepares the endpoint's initiator.
func (e *leasedEP) initRMA() {
	e.ep.base.rmas.Init(rmaHost{&e.ep}, rma.Parts{
		Config: e.ep.base.domain.cfg, Lists: &e.ep.base.lists, Accesses: &e.ep.base.accesses, Counts: &e.ep.base.counts,
	})
	e.initiated.Init(&e.ep.base.rmas, rmaLeasedHost{leasedHost{e}}, &e.answers, &e.ep.base.pendings, e.ep.base.now)
}

// rmaHost is an endpoint as its initiator has it.
type rmaHost struct{ e *Endpoint }

// Completes reports whether an operation with flags writes a completion.
func (h rmaHost) Completes(work, flags uint64) bool { return h.e.base.bound.txCompletes(work, flags) }

// Room reports whether there is room for a completion.
func (h rmaHost) Room() bool { return h.e.base.bound.txCQ.Room(0) }

// Unread is about how many completions the application has not read.
func (h rmaHost) Unread() uint64 { return h.e.base.bound.txCQ.Unread() }

// End writes the completion of an operation and counts it.
func (h rmaHost) End(op rma.Ended) {
	counter := h.e.base.reportAccess(op.Context, op.Flags, op.Completes, op.Status)
	h.e.base.countWork(counter, op.Work, op.Asked, op.Status != fi.Success, op.Total)
}

// accessCntr is the counter of one-sided operations whose completions have flags, nil for none.
func (e *bindings) accessCntr(flags uint64) *cq.Counter {
	if flags&fi.Read != 0 {
		return e.readCntr.Load()
	}
	return e.writeCntr.Load()
}

// reportAccess writes the completion, with flags, of a one-sided operation that has ended, if it completes or has
// failed, and returns the counter that counts it.
func (e *peering) reportAccess(context, flags uint64, completes bool, status fi.Errno) *cq.Counter {
	entry := cq.Entry{Context: context, Flags: flags, Src: fi.AddrNotAvail}
	if status != fi.Success {
		e.counts.Failed(status)
		if e.bound.txCQ != nil {
			e.bound.txCQ.CompleteError(entry, cq.ErrorInfo{Err: status})
		}
	} else if completes {
		e.bound.txCQ.Complete(entry)
	}
	return e.bound.accessCntr(flags)
}

// Link returns the link of a number.
func (h rmaHost) Link(number uint32) *rma.Link { return &h.e.base.links.At(number).Link }

// Ready returns the link's path if it works.
func (h rmaHost) Ready(l *rma.Link) (*rma.Path, bool) {
	p, ok := h.e.base.links.At(l.Index).Ready()
	if !ok {
		return nil, false
	}
	return &p.Path, true
}

// Send sends a message with a payload.
func (h rmaHost) Send(
	p *rma.Path, id hw.AMID, header uint64, head []byte, iov []fi.IOVec, total, stripe int,
) error {
	return h.e.base.sends.SendPayload(p, id, header, head, iov, total, stripe)
}

// Broken is what a post returns of which nothing went out because of err.
func (h rmaHost) Broken(err error) error { return h.e.base.broken(err) }

// Overtakes reports whether a copy would overtake what has been written to an address and has completed.
func (h rmaHost) Overtakes(p *rma.Path, dest fi.Addr) bool {
	return h.e.base.links.PutPending(p.Endpoint, dest)
}

// CaughtUp reports whether the peer has carried out what the data plane has sent to it, as far as a copy must not
// overtake that.
func (h rmaHost) CaughtUp(to *rma.Link, p *rma.Path) bool {
	e := h.e
	if e.base.order()&ordering.AfterSend != 0 {
		return !e.base.transports.iface.SendPending(p.Endpoint)
	}
	return !e.base.links.AnyPutPending(p.Endpoint, e.base.links.At(to.Index))
}

// Took counts elements of lists that took a way to the peer.
func (h rmaHost) Took(l *rma.Link, w list.Way, elements, n uint64) {
	h.e.base.countWay(h.e.base.links.At(l.Index), w, elements, n)
}

// FindKey returns a device's key of a peer's region.
func (h rmaHost) FindKey(l *rma.Link, p *rma.Path, key uint64, device *hw.RemoteKey) bool {
	return h.e.base.findKey(h.e.base.links.At(l.Index), p, key, device)
}

// KeyRefused notes that a device refused the key of a region.
func (h rmaHost) KeyRefused(p *rma.Path, key uint64) { h.e.base.opened.Refused(p.PeerDevice, key) }

// PeerToPeer reports whether memory of devices may go without copies in this process.
func (h rmaHost) PeerToPeer() bool { return h.e.base.chosen.peerToPeer() }

// Sleeps reports whether a thread may sleep on the doorbell.
func (h rmaHost) Sleeps() bool { return h.e.base.transports.iface.DoorbellFD() >= 0 }

// NotifyPoll has the next poll enter the runtime.
func (h rmaHost) NotifyPoll() { h.e.base.rx.notifyPoll() }

// Advance has a thread make progress.
func (h rmaHost) Advance() {
	h.e.base.rx.ring()
	h.e.base.rx.advance()
}

// Hold keeps the data plane from posting.
func (h rmaHost) Hold(n int) { h.e.base.hold(n) }

// Closed reports whether the endpoint closes or has closed.
func (h rmaHost) Closed() bool { return h.e.base.state.Load() == stateClosed }

// rmaLeasedHost is an endpoint as the protocol of its initiator has it.
type rmaLeasedHost struct{ leasedHost }

// NameOf names the peer of a link.
func (h rmaLeasedHost) NameOf(l *rma.Link) fmt.Stringer { return h.e.ep.base.links.At(l.Index).To }

// Reads returns the rendezvous of a new flow.
func (h rmaLeasedHost) Reads(f *flow.Flow, p *rma.Path) *rendezvous.Flow {
	return h.e.rendezvous.NewFlow(f, p)
}
