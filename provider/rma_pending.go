package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// One-sided operations that the data plane has posted (onesided.Pendings). Here is the endpoint as their answers have
// it.

// openPendings makes room for perStripe of them in each of n stripes, if the endpoint is one for one-sided operations.
func (e *initiator) openPendings(n, perStripe int) error {
	if e.info.Caps&(fi.RMA|fi.Atomic) == 0 {
		return nil
	}
	return e.pendings.Open(n, perStripe)
}

// fillOneSided gives C what it needs for one-sided operations.
func (e *initiator) fillOneSided(h *hot.EP) {
	if !e.pendings.Fill(h, e.stripeCount()) {
		return
	}
	h.CopyMax, h.DelegateMin, h.CopiedMax = e.copyMax(), e.delegateMin(), e.accesses.Sample()
	if e.published() != nil {
		h.Regions = e.domain.regions.Word()
	}
}

// copyMax is the longest operation, in bytes, that the data plane copies by itself (dataplane.RMA), 0 for none: not
// what is kept in order, shared with the target, or cut into segments. How long it delays a thread that waits for
// threads that post (hot.Grace) is bounded.
func (e *peering) copyMax() uint64 {
	p := e.links.Transports()[0]
	if p.Attr.Caps&rma.DirectCaps != rma.DirectCaps || e.orderedRMA() {
		return 0
	}
	return e.wholeMax(p, 1<<20, e.domain.cfg.RMAAssistSize)
}

// delegateMin is the shortest operation, in bytes, about which the data plane asks the
// runtime before it copies (dataplane.RMA); 0: none.
func (e *peering) delegateMin() uint32 {
	if least := e.domain.cfg.RMADelegateSize; least <= wire.MaxShareChunk && e.bound.txCQ != nil &&
		e.transports.iface.DoorbellFD() < 0 && !e.orderedRMA() {
		return uint32(least)
	}
	return 0
}

// counted reports whether the endpoint counts what peers do to its memory: then
// they must notify it.
func (e *bindings) counted() bool {
	return e.remoteReadCntr.Load() != nil || e.remoteWriteCntr.Load() != nil
}

// answersHost is an endpoint as the answers to its operations have it.
type answersHost struct{ leasedHost }

// LinkTo is the link to the peer of an operation. The operation's address may have been removed meanwhile: then the
// link is found by the peer's ring.
func (h answersHost) LinkTo(dest fi.Addr, ring uintptr) (uint32, bool) {
	if n := h.e.ep.base.links.Number(dest); n != 0 && h.e.ep.base.links.At(n-1).GoesTo(ring) {
		return n - 1, true
	}
	for l := range h.e.ep.base.links.All() {
		if l.GoesTo(ring) {
			return l.Index, true
		}
	}
	return 0, false
}

// Leads reports whether a link leads to the peer with a ring.
func (h answersHost) Leads(link uint32, ring uintptr) bool {
	return h.e.ep.base.links.At(link).LeadsTo(ring)
}

// Complete completes and counts an operation.
func (h answersHost) Complete(context, flags uint64, completes bool, status fi.Errno, n uint64) {
	counter := h.e.ep.base.reportAccess(context, flags, completes, status)
	switch {
	case counter == nil:
	case status != fi.Success:
		counter.CountError(1)
	default:
		counter.Done(n)
	}
}

// PeerLost says that a peer may have gone while an operation was posted to it.
func (e *Endpoint) PeerLost() { e.base.peerLost() }

func (e *initiator) peerLost() {
	e.pendings.SeekLost()
	e.sends.SeekLost()
	e.rx.notifyPoll()
	e.rx.ring()
}
