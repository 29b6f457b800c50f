package onesided

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Pendings are the operations that the data plane has posted and that wait for the target's answer
// (internal/dataplane/pending_unsafe.go). Any thread may call its methods, but Open and Close.
type Pendings struct {
	table mem.Array[hot.Pending] // perStripe for each stripe
	// lost says that a thread posted one while its peer was lost. Set by that thread, cleared by the lease holder;
	// sequentially consistent.
	lost atomic.Bool
}

// Open makes room for perStripe of them in each of n stripes.
func (p *Pendings) Open(n, perStripe int) (err error) {
	p.table, err = mem.NewArray[hot.Pending](n * perStripe)
	return err
}

// Close gives the memory back.
func (p *Pendings) Close() { _ = p.table.Free() }

// Fill gives the data plane their place. False: there are none.
func (p *Pendings) Fill(h *hot.EP, stripes int) bool {
	if p.table.Len() == 0 {
		return false
	}
	h.PendingCount = uint32(p.table.Len() / stripes)
	h.Pendings = uintptr(unsafe.Pointer(p.table.At(0)))
	return true
}

// At is one of them, for tests.
func (p *Pendings) At(i uint32) *hot.Pending { return p.table.At(i) }

// To reports whether an operation on a peer's memory waits for its answer.
func (p *Pendings) To(dest fi.Addr) bool {
	for i := range p.table.Len() {
		f := p.table.At(uint32(i))
		if atomic.LoadUint32(&f.Busy) != 0 && f.Dest == uint64(dest) {
			return true
		}
	}
	return false
}

// SeekLost has the lease holder end the operations on peers that are gone.
func (p *Pendings) SeekLost() { p.lost.Store(true) }

// Seeks reports whether SeekLost has been called, and nothing has come of it yet.
func (p *Pendings) Seeks() bool { return p.lost.Load() }

// AnswersHost is what [Answers] need of their endpoint, as the holder of the progress lease has it.
type AnswersHost interface {
	// LinkTo is the link to the peer at an address, of which operations are in the ring whose slots are at ring; the
	// address may have been removed meanwhile. False: no link leads there.
	LinkTo(dest fi.Addr, ring uintptr) (link uint32, ok bool)
	// Leads reports whether a link leads to the peer with a ring, and the peer's end is not reported.
	Leads(link uint32, ring uintptr) bool
	// Owns reports whether a source is the peer of a link: only it may speak about the link's operations.
	Owns(src hw.Source, link uint32) bool
	// Complete writes the completion of an operation of n bytes, with flags, if it completes or has failed, and counts
	// its end.
	Complete(context, flags uint64, completes bool, status fi.Errno, n uint64)
	// Malformed counts a message that a peer should not have sent, and logs why.
	Malformed(src hw.Source, format string, args ...any)
}

// Answers takes in the ends of an endpoint's [Pendings] that the data plane leaves: refusals, answers that find their
// queue full, the loss of a peer. All is for the holder of the progress lease.
type Answers struct {
	ep  AnswersHost // immutable
	all *Pendings   // immutable
}

// Init prepares for operations.
func (a *Answers) Init(ep AnswersHost, all *Pendings) { a.ep, a.all = ep, all }

// find returns the operation that an answer is for, nil if its sender may not answer it.
func (a *Answers) find(src hw.Source, id uint64) *hot.Pending {
	if a.all.table.Len() == 0 {
		return nil
	}
	f := dataplane.PendingIn(uintptr(unsafe.Pointer(a.all.table.At(0))), uint64(a.all.table.Len()), id)
	if f == nil {
		return nil
	}
	if l, ok := a.ep.LinkTo(fi.Addr(f.Dest), f.Ring); !ok || !a.ep.Owns(src, l) {
		return nil
	}
	return f
}

// Fetched takes in a result, or a piece of one, which come in their order.
func (a *Answers) Fetched(src hw.Source, id, at uint64, payload []byte) {
	f := a.find(src, id)
	if f == nil || !dataplane.Fits(f, at, uint64(len(payload))) {
		a.ep.Malformed(src, "%d bytes for operation %#x, which does not wait for them", len(payload), id)
		return
	}
	last := dataplane.Place(f, uintptr(unsafe.Pointer(unsafe.SliceData(payload))), uint64(len(payload)))
	runtime.KeepAlive(payload)
	if last {
		a.complete(f, fi.Success)
	}
}

// Ended takes in the target's word that an operation is done, or that there is no result.
func (a *Answers) Ended(src hw.Source, id uint64, d *wire.Done) {
	f := a.find(src, id)
	if f == nil || d.Status == fi.Success && (f.Flags&fi.Read != 0 || d.Units != 1) {
		a.ep.Malformed(src, "outcome of operation %#x, which does not wait for it", id)
		return
	}
	a.complete(f, d.Status)
}

// complete completes an operation.
func (a *Answers) complete(f *hot.Pending, status fi.Errno) {
	completes := f.Completes != 0
	e, bytes := dataplane.EndPending(f)
	a.ep.Complete(e.Context, e.Flags, completes, status, bytes)
}

// Seek does what SeekLost asks for, if it has been called.
func (a *Answers) Seek() {
	if a.all.lost.Swap(false) {
		a.lose(0, fi.ECONNRESET, false)
	}
}

// PeerLost ends the operations on the peer of a link that is gone, with status.
func (a *Answers) PeerLost(link uint32, status fi.Errno) { a.lose(link, status, true) }

// lose ends the operations whose peers' ends have been reported, or, with gone, are now: that of a link, with a status.
// Before, the answers may stand in the own ring.
func (a *Answers) lose(link uint32, status fi.Errno, gone bool) {
	for i := range a.all.table.Len() {
		f := a.all.table.At(uint32(i))
		if atomic.LoadUint32(&f.Busy) == 0 {
			continue
		}
		switch l, ok := a.ep.LinkTo(fi.Addr(f.Dest), f.Ring); {
		case ok && gone && l == link:
			a.complete(f, status)
		case !ok || !a.ep.Leads(l, f.Ring):
			a.complete(f, fi.ECONNRESET)
		}
	}
}
