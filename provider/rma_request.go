package provider

import (
	"errors"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/tally"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// rmaRequest is a read, write or atomic that the target answers. It lies off
// the Go heap, in its stripe's request table.
//
// The thread that posts it owns it until its last message is about to be sent, or
// until it is queued for progress; from then on the holder of the progress lease
// does. It is finished once, by the thread that claims it: see live.
type rmaRequest struct {
	context uint64
	flags   uint64 // rma* bits
	work    uint64 // the number of the deferred work that it is, or 0
	total   uint64 // bytes of the operation, of an atomic's result
	data    uint64
	dest    uint64 // fi.Addr
	link    uint32
	via     uint32 // serial of the path over which its first messages go
	count   uint32
	iov     [wire.IOVLimit]fi.IOVec // local memory, of an atomic the result's
	parts   uint32
	part    uint32 // that the next message is of
	// elements is how many of a list it is, which are one message and no parts, with rmaElements.
	elements uint32
	remote   [wire.IOVLimit]fi.RMAIOVec
	sent     uint64 // bytes of the part
	done     uint64 // bytes of the operation that messages were sent for

	// of an atomic
	kind     atomics.Kind
	op       fi.Op
	datatype fi.Datatype
	operands uint32
	operand  [wire.IOVLimit]fi.IOVec
	compares uint32
	compare  [wire.IOVLimit]fi.IOVec

	// left is what is still to be answered: parts of a write, bytes of the
	// others. Stored before the first message, then the lease holder's.
	left atomic.Uint64
	// status is the first error. The lease holder's; the owner reads it when left says that it has come.
	status fi.Errno
	// failed is where, of elements of a list: which of them of a write, in which of the bytes of a read. Likewise.
	failed uint64
	// live is the generation of the request's id when all its messages are
	// sent, else 0. Stored by the owner before the last message, changed to 0
	// by compare-and-swap by the thread that finishes the request; sequentially
	// consistent.
	live atomic.Uint32
}

const (
	rmaIsRead uint64 = 1 << iota
	rmaIsAtomic
	rmaIsFetch
	rmaHasData
	rmaCompletes
	rmaAsked     // a completion was asked for by fi.Completion
	rmaSegmented // in segments; left is added to as they are posted
	rmaDelivers  // a write in segments ends when the peer's memory has it
	rmaMessages  // the peer does not let its memory be reached
	rmaByDevice  // the transport's device does it: see deviceOp
	rmaOrdered   // counted in link.order
	rmaHolds     // and in link.reads
	rmaListed    // an element of a list
	rmaElements  // several of a list; the lower bits of work are the place of the first in the selection
)

// set copies a request that was built elsewhere, but for live.
func (req *rmaRequest) set(r *rmaRequest) {
	req.context, req.flags, req.total, req.data = r.context, r.flags, r.total, r.data
	req.work, req.dest = r.work, r.dest
	req.link, req.count, req.iov = r.link, r.count, r.iov
	req.parts, req.part, req.remote, req.sent, req.done = r.parts, 0, r.remote, 0, 0
	req.elements, req.failed = r.elements, 0
	req.kind, req.op, req.datatype = r.kind, r.op, r.datatype
	req.operands, req.operand, req.compares, req.compare = r.operands, r.operand, r.compares, r.compare
	req.status = fi.Success
	req.left.Store(r.left.Load())
}

// countedAs is the kind of operations as which a request counts.
func (req *rmaRequest) countedAs() tally.Kind {
	switch {
	case req.flags&rmaIsAtomic != 0:
		return tally.Atomic
	case req.flags&rmaIsRead != 0:
		return tally.Read
	}
	return tally.Write
}

// units is what the target answers for: bytes of a read or of an atomic's
// result, elements of the others. An answer to nothing counts as one.
func (req *rmaRequest) units() uint64 {
	if req.flags&(rmaIsRead|rmaIsFetch) != 0 {
		return max(1, req.total)
	}
	return max(1, uint64(req.parts+req.elements))
}

// operations is how many operations of an application it is.
func (req *rmaRequest) operations() uint64 { return max(1, uint64(req.elements)) }

// dropEmpty drops remote elements without bytes, but one of an operation on
// nothing: an answer to such a message, after those to all bytes, would end nothing.
func (req *rmaRequest) dropEmpty() {
	kept := uint32(0)
	for i, v := range req.remote[:req.parts] {
		if v.Len != 0 || kept == 0 && uint32(i)+1 == req.parts {
			req.remote[kept] = v
			kept++
		}
	}
	req.parts = kept
	req.left.Store(req.units())
}

// dataWaits reports whether the last message, which carries the CQ data of a write, is sent only when the target has
// accepted all elements before its own: the target keeps nothing of an operation whose first elements it has refused.
func (req *rmaRequest) dataWaits() bool { return req.flags&rmaHasData != 0 && req.parts > 1 }

// ends is what a message for remote element i ends, the last for it or not.
func (req *rmaRequest) ends(i uint32, last bool) wire.Ends {
	switch {
	case !last:
		return wire.EndsNothing
	case i+1 == req.parts:
		return wire.EndsOperation
	}
	for _, later := range req.remote[i+1 : req.parts] {
		if later.Key == req.remote[i].Key {
			return wire.EndsShared
		}
	}
	return wire.EndsElement
}

// mark has a message of a write, from an offset in element i on, say what it ends, and carry CQ data if that is the
// operation. The target admits data with all of the one element, or this side sends it when all else is answered
// (dataWaits): none comes of a write that is refused.
func (req *rmaRequest) mark(w *wire.Write, i uint32, from uint64, last bool) {
	ends := req.ends(i, last)
	w.SetEnds(ends)
	if ends.Operation() && req.flags&rmaHasData != 0 {
		w.Flags |= wire.WriteData
		if req.parts == 1 && from != 0 {
			w.Flags |= wire.WriteRest
		}
	}
}

// claimRMA takes a request whose messages are all sent, to finish it. Only one
// caller gets it.
func (e *txRequests) claimRMA(id uint64) bool {
	req, known := e.rmas.Lookup(id)
	return known && req.live.CompareAndSwap(uint32(id>>32), 0)
}

// queueRMA leaves a request to progress: one in segments, or one whose messages found no room. It makes progress at
// once if no other thread does.
func (e *initiator) queueRMA(id uint64) {
	e.enqueueRMA(id)
	e.rx.ring()
	e.rx.advance()
}

// enqueueRMA is queueRMA for the holder of the progress lease.
func (e *initiator) enqueueRMA(id uint64) {
	e.rmaMu.Lock()
	e.rmaQueue = append(e.rmaQueue, id)
	e.rmaMu.Unlock()
	e.rmaQueued.Add(1)
	e.rx.callGo()
}

// takeQueued takes over what other threads have left.
func (e *leasedEP) takeQueued() {
	if e.rmaQueued.Load() == 0 {
		return
	}
	e.rmaMu.Lock()
	e.rmaStreams = append(e.rmaStreams, e.rmaQueue...)
	e.rmaQueued.Add(-int32(len(e.rmaQueue)))
	e.rmaQueue = e.rmaQueue[:0]
	e.rmaMu.Unlock()
}

// pumpRMAs sends what waited for room.
func (e *leasedEP) pumpRMAs() {
	e.takeQueued()
	e.reapShares(e)
	e.unanswered = 0
	e.rmaStreams.Step(e.pumpStarted)
	e.flows.Pump()
	e.target.Reply()
	e.answers.Seek()
}

// pumpStarted sends what waited for room of a request, and reports whether it is done with.
func (e *leasedEP) pumpStarted(at *uint64) bool {
	id := *at
	req, ok := e.rmas.Lookup(id)
	switch {
	case !ok:
		return true
	case req.flags&rmaSegmented != 0:
		if !e.startTransfer(req, id) {
			e.finishRMA(req, id, fi.ECONNRESET)
		}
		return true
	case req.flags&rmaByDevice != 0:
		return e.pumpDevice(req, id)
	}
	l := e.linkAt(req.link)
	p, ok := l.ready()
	err := error(fi.ECONNRESET)
	if ok {
		err = e.pumpRMA(p, req, id, e.progressStripe)
	}
	if fi.ErrnoOf(err) == fi.EAGAIN {
		if errors.Is(err, errUnanswered) {
			e.unanswered++
		}
		return false
	}
	e.released(l)
	if err != nil {
		e.finishRMA(req, id, fi.ErrnoOf(err))
	}
	return true
}

// rmaBusy reports whether something waits for room.
func (e *leasedEP) rmaBusy() bool {
	return len(e.rmaStreams) != e.unanswered || e.target.Replying() || e.flows.Busy() ||
		e.rmaQueued.Load() != 0 || e.shares.waiting.Load() != 0 || e.pendings.Seeks()
}

// answered takes off what the target has answered for and finishes the request when that was the last.
func (e *leasedEP) answered(src hw.Source, id uint64, d *wire.Done) {
	req, known := e.rmas.Lookup(id)
	if !known || !e.ownsLink(src, req.link) || d.Units > req.left.Load() {
		e.malformed(src, "answer of %d units to request %#x, which does not wait for it", d.Units, id)
		return
	}
	if req.flags&rmaSegmented != 0 {
		if !e.segmentAnswered(req, id, d.At, d.Units, d.Status) {
			e.malformed(src, "answer to request %#x, of which nothing is under way", id)
		}
		return
	}
	if d.Status != fi.Success && req.status == fi.Success {
		if req.flags&rmaElements != 0 && !req.refusedAt(d.At) {
			e.malformed(src, "answer to request %#x, of which nothing is at %d", id, d.At)
			return
		}
		req.status = d.Status
	}
	if d.Units == 0 {
		return
	}
	switch left := req.left.Add(-d.Units); {
	case left == 0 && e.claimRMA(id):
		e.finishRMA(req, id, req.status)
	case left == 1 && req.dataWaits():
		e.unanswered = 0 // its last message may go
	}
}

// onRMADone takes in the target's answer to messages of an operation.
func (e *leasedEP) onRMADone(src hw.Source, header uint64, head, payload []byte) {
	var d wire.Done
	if !d.Parse(head) {
		e.malformed(src, "outcome of %d bytes does not parse", len(head))
		return
	}
	if header&hot.PendingID != 0 {
		e.answers.Ended(src, header, &d)
		return
	}
	e.answered(src, header, &d)
}

// onReadData takes in a piece of what was read.
func (e *leasedEP) onReadData(src hw.Source, header uint64, head, payload []byte) {
	at, ok := wire.ParseWord(head)
	if ok && header&hot.PendingID != 0 {
		e.answers.Fetched(src, header, at, payload)
		return
	}
	req, known := e.rmas.Lookup(header)
	n := uint64(len(payload))
	if !ok || !known || req.flags&(rmaIsRead|rmaIsFetch) == 0 || at > req.total || n > req.total-at ||
		!e.ownsLink(src, req.link) ||
		n > req.left.Load() {
		e.malformed(src, "%d bytes for request %#x, which does not wait for them", n, header)
		return
	}
	for _, v := range e.localOf(e.scratch[e.progressStripe].frag[:0], req, at, n) {
		if err := hmem.Store(uint64(v.Base), payload[:v.Len]); err != nil && req.status == fi.Success {
			req.status = fi.ErrnoOf(e.refuse(fi.EIO, "copy %d bytes to a device: %v", v.Len, err))
			req.failed = at
		}
		payload = payload[v.Len:]
	}
	if req.flags&rmaSegmented != 0 {
		if !e.segmentAnswered(req, header, at, n, req.status) {
			e.malformed(src, "%d bytes at %d for request %#x, which has no segment there", n, at, header)
		}
		return
	}
	if n == 0 && req.total == 0 {
		n = 1 // an empty read
	}
	e.answered(src, header, &wire.Done{Status: fi.Success, Units: n, At: at})
}

// finishRMA completes a request. The caller holds the progress lease and has
// claimed the request, or it was queued and its messages not all sent.
func (e *initiator) finishRMA(req *rmaRequest, id uint64, status fi.Errno) {
	l := e.linkAt(req.link)
	e.over(l, req)
	l.inFlight.Add(-1)
	if req.flags&rmaElements != 0 {
		ended := req.together()
		req.live.Store(0)
		e.rmas.Free(id)
		e.lists.TogetherEnded(ended, status)
		return
	}
	if listWork(req.work) {
		work, total := req.work, req.total
		req.live.Store(0)
		e.rmas.Free(id)
		e.lists.Ended(work, status, total)
		return
	}
	flags := rmaKind(req.flags&rmaIsRead != 0)
	if req.flags&rmaIsAtomic != 0 {
		flags = fi.Atomic | fi.Write
		if req.flags&rmaIsFetch != 0 {
			flags = fi.Atomic | fi.Read
		}
	}
	counter := e.reportAccess(req.context, flags, req.flags&rmaCompletes != 0, status)
	e.countEnd(counter, req.work, req.flags&rmaAsked != 0, status != fi.Success, req.total)
	req.live.Store(0)
	e.rmas.Free(id)
}

// PeerLost ends the operations that wait for a peer that is gone, or for room on the way to it. Those of a device end
// as its commands do.
func (o oneSided) PeerLost(number uint32, status fi.Errno) {
	e := o.e
	l := e.linkAt(number)
	e.answers.PeerLost(number, status)
	l.flow.drop(status)
	l.flow = nil
	e.rmas.Range(func(id uint64, req *rmaRequest) {
		// the link is valid once live is
		if req.live.Load() == uint32(id>>32) && req.link == l.index && e.claimRMA(id) {
			e.finishRMA(req, id, status)
		}
	})
	e.takeQueued()
	e.unanswered = 0
	e.rmaStreams.Step(func(at *uint64) bool {
		id := *at
		req, ok := e.rmas.Lookup(id)
		if !ok || req.link != l.index || req.flags&rmaByDevice != 0 {
			return false
		}
		if req.flags&rmaSegmented == 0 {
			e.released(l)
		}
		e.finishRMA(req, id, status)
		return true
	})
}
