package provider

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/provider/wire"
)

// fetches are the atomic operations that C has posted and that wait for their
// results (dataplane.Atomic). C takes in an answer by itself as a rule; what it
// leaves comes here: refusals, results that find their queue full, the loss of
// a peer. A thread that finishes one holds the progress lease.
type fetches struct {
	table mem.Array[hot.Fetch] // perStripe for each stripe
	// lost says that a thread posted one while its peer was lost. Set by that
	// thread, cleared by the lease holder; sequentially consistent.
	lost atomic.Bool
}

// openFetches makes room for perStripe of them in each of n stripes, if the
// endpoint is one for one-sided operations.
func (e *initiator) openFetches(n, perStripe int) (err error) {
	if e.info.Caps&(fi.RMA|fi.Atomic) != 0 {
		e.fetches.table, err = mem.NewArray[hot.Fetch](n * perStripe)
	}
	return err
}

// fillOneSided gives C what it needs for one-sided operations.
func (e *initiator) fillOneSided(h *hot.EP) {
	if e.fetches.table.Len() == 0 {
		return
	}
	h.FetchCount = uint32(e.fetches.table.Len() / e.stripeCount())
	h.Fetches = uintptr(unsafe.Pointer(e.fetches.table.At(0)))
	h.CopyMax, h.DelegateMin, h.CopiedMax = e.copyMax(), e.delegateMin(), e.accesses.Sample()
	if e.published() == nil {
		return
	}
	if first := e.domain.hotRegions.first(); first != nil {
		h.Regions = uintptr(unsafe.Pointer(first))
		h.RegionCount = publishedKeys
	}
}

// fetchOf returns the operation that an answer is for, nil if its sender may
// not answer it.
func (e *leasedEP) fetchOf(src hw.Source, id uint64) *hot.Fetch {
	at := uint32(id)
	if uint64(at) >= uint64(e.fetches.table.Len()) {
		return nil
	}
	f := e.fetches.table.At(at)
	if atomic.LoadUint32(&f.Busy) == 0 || uint64(f.Generation) != id>>32&(1<<31-1) {
		return nil
	}
	if l := e.fetchLink(f); l == nil || !e.ownsLink(src, l.index) {
		return nil
	}
	return f
}

// fetchLink is the link to the peer of an operation, nil if it leads to another one by now. The operation's address may
// have been removed meanwhile: then the link is found by the peer's ring.
func (e *peering) fetchLink(f *hot.Fetch) *link {
	if n := e.linkNumber(fi.Addr(f.Dest)); n != 0 {
		if l := e.linkAt(n - 1); l.goesTo(f.Ring) {
			return l
		}
	}
	for _, l := range *e.links.Load() {
		if l.goesTo(f.Ring) {
			return l
		}
	}
	return nil
}

// fetched takes in a result.
func (e *leasedEP) fetched(src hw.Source, id, at uint64, payload []byte) {
	f := e.fetchOf(src, id)
	if f == nil || at != 0 || uint64(len(payload)) != f.Bytes {
		e.malformed(src, "%d bytes for operation %#x, which does not wait for them", len(payload), id)
		return
	}
	copy(bytesAt(f.Result, f.Bytes), payload)
	e.finishFetch(f, fi.Success)
}

// fetchRefused takes in the target's word that there is no result.
func (e *leasedEP) fetchRefused(src hw.Source, id uint64, d *wire.Done) {
	f := e.fetchOf(src, id)
	if f == nil || d.Status == fi.Success {
		e.malformed(src, "outcome of operation %#x, which does not wait for it", id)
		return
	}
	e.finishFetch(f, d.Status)
}

func (e *peering) finishFetch(f *hot.Fetch, status fi.Errno) {
	entry := cq.Entry{Context: f.Context, Flags: fi.Atomic | fi.Read, Src: fi.AddrNotAvail}
	completes := f.Completes != 0
	order.Store32(&f.Busy, 0)
	if status != fi.Success {
		e.countFailed(status)
		if e.txCQ != nil {
			e.txCQ.CompleteError(entry, cq.ErrorInfo{Err: status})
		}
	} else if completes {
		e.txCQ.Complete(entry)
	}
	switch c := e.readCntr.Load(); {
	case c == nil:
	case status != fi.Success:
		c.CountError(1)
	default:
		c.Done(f.Bytes)
	}
}

// lostFetches ends the operations whose peers' ends have been reported, or are now: that of the link gone, nil: of
// none. Before, the answers may stand in the own ring.
func (e *initiator) lostFetches(gone *link) {
	for i := range e.fetches.table.Len() {
		f := e.fetches.table.At(uint32(i))
		if atomic.LoadUint32(&f.Busy) == 0 {
			continue
		}
		if l := e.fetchLink(f); l != nil && l != gone && l.leadsTo(f.Ring) {
			continue
		}
		e.finishFetch(f, fi.ECONNRESET)
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
	e.fetches.lost.Store(true)
	e.requests.lost.Store(true)
	atomic.StoreUint32(&e.rx.hot.Attention, 1)
	e.rx.ring()
}

// fetching reports whether an operation on a peer's memory waits for its result.
func (e *txRequests) fetching(dest fi.Addr) bool {
	for i := range e.fetches.table.Len() {
		f := e.fetches.table.At(uint32(i))
		if atomic.LoadUint32(&f.Busy) != 0 && f.Dest == uint64(dest) {
			return true
		}
	}
	return false
}
