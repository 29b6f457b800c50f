package provider

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/provider/backends"
	"github.com/weft-fabric/weft/provider/wire"
)

// pendings are the one-sided operations that the data plane has posted and that wait for the target's answer
// (internal/dataplane, pending_unsafe.go). It takes in an answer by itself as a rule; what it leaves comes here:
// refusals, answers that find their queue full, the loss of a peer. A thread that finishes one holds the progress
// lease.
type pendings struct {
	table mem.Array[hot.Pending] // perStripe for each stripe
	// lost says that a thread posted one while its peer was lost. Set by that
	// thread, cleared by the lease holder; sequentially consistent.
	lost atomic.Bool
}

// openPendings makes room for perStripe of them in each of n stripes, if the
// endpoint is one for one-sided operations.
func (e *initiator) openPendings(n, perStripe int) (err error) {
	if e.info.Caps&(fi.RMA|fi.Atomic) != 0 {
		e.pendings.table, err = mem.NewArray[hot.Pending](n * perStripe)
	}
	return err
}

// fillOneSided gives C what it needs for one-sided operations.
func (e *initiator) fillOneSided(h *hot.EP) {
	if e.pendings.table.Len() == 0 {
		return
	}
	h.PendingCount = uint32(e.pendings.table.Len() / e.stripeCount())
	h.Pendings = uintptr(unsafe.Pointer(e.pendings.table.At(0)))
	h.CopyMax, h.DelegateMin, h.CopiedMax = e.copyMax(), e.delegateMin(), e.accesses.Sample()
	if e.published() == nil {
		return
	}
	if first := e.domain.published.Direct.First(); first != nil {
		h.Regions = uintptr(unsafe.Pointer(first))
		h.RegionCount = backends.PublishedKeys
	}
}

// pendingOf returns the operation that an answer is for, nil if its sender may
// not answer it.
func (e *leasedEP) pendingOf(src hw.Source, id uint64) *hot.Pending {
	at := uint32(id)
	if uint64(at) >= uint64(e.pendings.table.Len()) {
		return nil
	}
	f := e.pendings.table.At(at)
	if atomic.LoadUint32(&f.Busy) == 0 || uint64(f.Generation) != id>>32&(1<<31-1) {
		return nil
	}
	if l := e.pendingLink(f); l == nil || !e.ownsLink(src, l.index) {
		return nil
	}
	return f
}

// pendingLink is the link to the peer of an operation, nil if it leads to another one by now. The operation's address
// may have been removed meanwhile: then the link is found by the peer's ring.
func (e *peering) pendingLink(f *hot.Pending) *link {
	if n := e.linkNumber(fi.Addr(f.Dest)); n != 0 {
		if l := e.linkAt(n - 1); l.goesTo(f.Ring) {
			return l
		}
	}
	for l := range e.links.All() {
		if l.goesTo(f.Ring) {
			return l
		}
	}
	return nil
}

// fetched takes in a result, or a piece of one, which come in their order.
func (e *leasedEP) fetched(src hw.Source, id, at uint64, payload []byte) {
	f := e.pendingOf(src, id)
	if f == nil || f.Flags&fi.Read == 0 || at != uint64(f.Arrived) || uint64(len(payload)) > f.Bytes-at {
		e.malformed(src, "%d bytes for operation %#x, which does not wait for them", len(payload), id)
		return
	}
	copy(bytesAt(f.Result, f.Bytes)[at:], payload)
	if f.Arrived += uint32(len(payload)); uint64(f.Arrived) == f.Bytes {
		e.finishPending(f, fi.Success)
	}
}

// pendingEnded takes in the target's word that an operation is done, or that there is no result.
func (e *leasedEP) pendingEnded(src hw.Source, id uint64, d *wire.Done) {
	f := e.pendingOf(src, id)
	if f == nil || d.Status == fi.Success && (f.Flags&fi.Read != 0 || d.Units != 1) {
		e.malformed(src, "outcome of operation %#x, which does not wait for it", id)
		return
	}
	e.finishPending(f, d.Status)
}

// finishPending completes an operation.
func (e *peering) finishPending(f *hot.Pending, status fi.Errno) {
	context, flags, completes, bytes := f.Context, f.Flags, f.Completes != 0, f.Bytes
	order.Store32(&f.Busy, 0) // another operation may take it
	counter := e.reportAccess(context, flags, completes, status)
	switch {
	case counter == nil:
	case status != fi.Success:
		counter.CountError(1)
	default:
		counter.Done(bytes)
	}
}

// lostPendings ends the operations whose peers' ends have been reported, or are now, with status: that of the link
// gone, nil: of none. Before, the answers may stand in the own ring.
func (e *initiator) lostPendings(gone *link, status fi.Errno) {
	for i := range e.pendings.table.Len() {
		f := e.pendings.table.At(uint32(i))
		if atomic.LoadUint32(&f.Busy) == 0 {
			continue
		}
		switch l := e.pendingLink(f); {
		case l != nil && l == gone:
			e.finishPending(f, status)
		case l == nil || !l.leadsTo(f.Ring):
			e.finishPending(f, fi.ECONNRESET)
		}
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
	e.pendings.lost.Store(true)
	e.requests.lost.Store(true)
	e.rx.callGo()
	e.rx.ring()
}

// pendingTo reports whether an operation on a peer's memory waits for its result.
func (e *txRequests) pendingTo(dest fi.Addr) bool {
	for i := range e.pendings.table.Len() {
		f := e.pendings.table.At(uint32(i))
		if atomic.LoadUint32(&f.Busy) != 0 && f.Dest == uint64(dest) {
			return true
		}
	}
	return false
}
