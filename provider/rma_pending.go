package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/backends"
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
	if e.published() == nil {
		return
	}
	if first := e.domain.published.Direct.First(); first != nil {
		h.Regions = addressOfRegion(first)
		h.RegionCount = backends.PublishedKeys
	}
}

// answersHost is an endpoint as the answers to its operations have it.
type answersHost struct{ *leasedEP }

// LinkTo is the link to the peer of an operation. The operation's address may have been removed meanwhile: then the
// link is found by the peer's ring.
func (e answersHost) LinkTo(dest fi.Addr, ring uintptr) (uint32, bool) {
	if n := e.linkNumber(dest); n != 0 && e.linkAt(n-1).goesTo(ring) {
		return n - 1, true
	}
	for l := range e.links.All() {
		if l.goesTo(ring) {
			return l.index, true
		}
	}
	return 0, false
}

// Leads reports whether a link leads to the peer with a ring.
func (e answersHost) Leads(link uint32, ring uintptr) bool { return e.linkAt(link).leadsTo(ring) }

// Owns reports whether a source is the peer of a link.
func (e answersHost) Owns(src hw.Source, link uint32) bool { return e.ownsLink(src, link) }

// Malformed counts and logs a message that a peer should not have sent.
func (e answersHost) Malformed(src hw.Source, format string, args ...any) {
	e.malformed(src, format, args...)
}

// Complete completes and counts an operation.
func (e answersHost) Complete(context, flags uint64, completes bool, status fi.Errno, n uint64) {
	counter := e.reportAccess(context, flags, completes, status)
	switch {
	case counter == nil:
	case status != fi.Success:
		counter.CountError(1)
	default:
		counter.Done(n)
	}
}

// goesTo reports whether there is a link, and its path is that to the peer with a ring.
func (l *link) goesTo(ring uintptr) bool {
	if l == nil {
		return false
	}
	p := l.path.Load()
	return p != nil && p.slots == ring
}

// leadsTo reports whether the link's path is that to the peer with a ring, and the peer's end is not reported.
func (l *link) leadsTo(ring uintptr) bool {
	p := l.path.Load()
	return p != nil && p.slots == ring && !p.Reported()
}

// PeerLost says that a peer may have gone while an operation was posted to it.
func (e *Endpoint) PeerLost() {
	e.pendings.SeekLost()
	e.requests.lost.Store(true)
	e.rx.callGo()
	e.rx.ring()
}
