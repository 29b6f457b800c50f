package rma

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/pending"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/onesided"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Protocol is what progress does with the operations of an [Initiator]: it sends what found no room, moves segments,
// and takes in answers. It is for the holder of the progress lease, but for Requested.
type Protocol struct {
	in       *Initiator
	ep       LeasedHost
	answers  *onesided.Answers  // to what the data plane has posted
	pendings *onesided.Pendings // and that itself

	waiting    pending.List[uint64]      // requests that wait for room or answers, by id
	unanswered int                       // of them, those that waited for answers when they were last pumped
	transfers  map[uint64]*flow.Transfer // requests in segments, by id
	spare      segmentPool
	flows      flow.Set
}

// Init prepares the protocol of an initiator. now is the clock of flows.
func (pr *Protocol) Init(
	in *Initiator, ep LeasedHost, answers *onesided.Answers, pendings *onesided.Pendings, now func() congestion.Time,
) {
	pr.in, pr.ep, pr.answers, pr.pendings, pr.flows = in, ep, answers, pendings, flow.NewSet(now)
}

// queue are the ids of requests that found no room for all messages, or are in segments, for progress.
type queue struct {
	mu  sync.Mutex // which no other post takes
	ids []uint64   // under mu
	// n is their number. Written under mu, read by progress without it; sequentially consistent.
	n atomic.Int32
}

// Handlers are those of the target's answers.
func (pr *Protocol) Handlers() map[hw.AMID]hw.Handler {
	return map[hw.AMID]hw.Handler{wire.AMRMADone: pr.onDone, wire.AMReadData: pr.onData}
}

// Requested reports whether another thread has left something for Pump. Any thread.
func (pr *Protocol) Requested() bool { return pr.in.requested() || pr.pendings.Seeks() }

// SourceLost does nothing: operations end with their links.
func (pr *Protocol) SourceLost(hw.Source) {}

// Moving reports whether operations in segments, or of devices, are under way.
func (pr *Protocol) Moving() bool { return len(pr.transfers) != 0 || pr.in.devices.any() }

// claim takes a request whose messages are all sent, to end it. Only one
// caller gets it.
func (in *Initiator) claim(id uint64) bool {
	req, known := in.requests.Lookup(id)
	return known && req.live.CompareAndSwap(uint32(id>>32), 0)
}

// leaveToProgress leaves a request to progress: one in segments, or one whose messages found no room. It makes progress
// at once if no other thread does.
func (in *Initiator) leaveToProgress(id uint64) {
	in.enqueue(id)
	in.host.Advance()
}

// enqueue is leaveToProgress for the holder of the progress lease.
func (in *Initiator) enqueue(id uint64) {
	in.queue.add(id)
	in.host.NotifyPoll()
}

// add adds an id.
func (q *queue) add(id uint64) {
	q.mu.Lock()
	q.ids = append(q.ids, id)
	q.mu.Unlock()
	q.n.Add(1)
}

// take appends the ids to a list, and takes them out.
func (q *queue) take(to pending.List[uint64]) pending.List[uint64] {
	if q.n.Load() == 0 {
		return to
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	to = append(to, q.ids...)
	q.n.Add(-int32(len(q.ids)))
	q.ids = q.ids[:0]
	return to
}

// takeQueued takes over what other threads have left.
func (pr *Protocol) takeQueued() {
	pr.waiting = pr.in.queue.take(pr.waiting)
}

// Pump sends what waited for room.
func (pr *Protocol) Pump() {
	pr.takeQueued()
	pr.in.reap(pr)
	pr.unanswered = 0
	pr.waiting.Step(pr.pumpWaiting)
	pr.flows.Pump()
	pr.answers.Seek()
}

// pumpWaiting gives a request in segments to the flow of its link, or sends what waits of another one, and reports
// whether the request waits no more.
func (pr *Protocol) pumpWaiting(at *uint64) bool {
	in := pr.in
	id := *at
	req, ok := in.requests.Lookup(id)
	switch {
	case !ok:
		return true
	case req.flags&flagSegmented != 0:
		if !pr.startTransfer(req, id) {
			pr.end(req, id, fi.ECONNRESET)
		}
		return true
	case req.flags&flagByDevice != 0:
		return pr.pumpDevice(req, id)
	}
	l := in.host.Link(req.link)
	p, ok := in.host.Ready(l)
	err := error(fi.ECONNRESET)
	if ok {
		err = in.pump(p, req, id, in.progress)
	}
	if fi.ErrnoOf(err) == fi.EAGAIN {
		if errors.Is(err, errUnanswered) {
			pr.unanswered++
		}
		return false
	}
	in.allSent(l)
	if err != nil {
		pr.end(req, id, fi.ErrnoOf(err))
	}
	return true
}

// Busy reports whether something waits for room.
func (pr *Protocol) Busy() bool {
	return len(pr.waiting) != pr.unanswered || pr.flows.Busy() || pr.Requested()
}

// answered takes off what the target has answered for and ends the request when that was the last.
func (pr *Protocol) answered(src hw.Source, id uint64, d *wire.Done) {
	in := pr.in
	req, known := in.requests.Lookup(id)
	if !known || !pr.ep.Owns(src, req.link) || d.Units > req.left.Load() {
		pr.ep.Malformed(src, "answer of %d units to request %#x, which does not wait for it", d.Units, id)
		return
	}
	if req.flags&flagSegmented != 0 {
		if !pr.segmentAnswered(req, id, d.At, d.Units, d.Status) {
			pr.ep.Malformed(src, "answer to request %#x, of which nothing is under way", id)
		}
		return
	}
	if d.Status != fi.Success && req.status == fi.Success {
		if req.flags&flagElements != 0 && !req.refusedAt(d.At) {
			pr.ep.Malformed(src, "answer to request %#x, of which nothing is at %d", id, d.At)
			return
		}
		req.status = d.Status
	}
	if d.Units == 0 {
		return
	}
	switch left := req.left.Add(-d.Units); {
	case left == 0 && in.claim(id):
		pr.end(req, id, req.status)
	case left == 1 && req.dataWaits():
		pr.unanswered = 0 // its last message may go
	}
}

// onDone takes in the target's answer to messages of an operation.
func (pr *Protocol) onDone(src hw.Source, header uint64, head, payload []byte) {
	var d wire.Done
	if !d.Parse(head) {
		pr.ep.Malformed(src, "outcome of %d bytes does not parse", len(head))
		return
	}
	if header&hot.PendingID != 0 {
		pr.answers.Ended(src, header, &d)
		return
	}
	pr.answered(src, header, &d)
}

// onData takes in a piece of what was read.
func (pr *Protocol) onData(src hw.Source, header uint64, head, payload []byte) {
	in := pr.in
	at, ok := wire.ParseWord(head)
	if ok && header&hot.PendingID != 0 {
		pr.answers.Fetched(src, header, at, payload)
		return
	}
	req, known := in.requests.Lookup(header)
	n := uint64(len(payload))
	if !ok || !known || req.flags&(flagIsRead|flagIsFetch) == 0 || at > req.total || n > req.total-at ||
		!pr.ep.Owns(src, req.link) ||
		n > req.left.Load() {
		pr.ep.Malformed(src, "%d bytes for request %#x, which does not wait for them", n, header)
		return
	}
	for _, v := range in.localOf(in.scratch[in.progress].frag[:0], req, at, n) {
		if err := hmem.Store(uint64(v.Base), payload[:v.Len]); err != nil && req.status == fi.Success {
			req.status = fi.ErrnoOf(log.Reject(log.EPData, fi.EIO, "copy %d bytes to a device: %v", v.Len, err))
			req.failed = at
		}
		payload = payload[v.Len:]
	}
	if req.flags&flagSegmented != 0 {
		if !pr.segmentAnswered(req, header, at, n, req.status) {
			pr.ep.Malformed(src, "%d bytes at %d for request %#x, which has no segment there", n, at, header)
		}
		return
	}
	if n == 0 && req.total == 0 {
		n = 1 // an empty read
	}
	pr.answered(src, header, &wire.Done{Status: fi.Success, Units: n, At: at})
}

// end completes a request. The caller holds the progress lease and has
// claimed the request, or it was queued and its messages not all sent.
func (pr *Protocol) end(req *Request, id uint64, status fi.Errno) {
	in := pr.in
	l := in.host.Link(req.link)
	in.over(l, req)
	l.InFlight.Add(-1)
	if req.flags&flagElements != 0 {
		ended := req.together()
		req.live.Store(0)
		in.requests.Free(id)
		in.lists.TogetherEnded(ended, status)
		return
	}
	if ofList(req.work) {
		work, total := req.work, req.total
		req.live.Store(0)
		in.requests.Free(id)
		in.lists.Ended(work, status, total)
		return
	}
	flags := Kind(req.flags&flagIsRead != 0)
	if req.flags&flagIsAtomic != 0 {
		flags = fi.Atomic | fi.Write
		if req.flags&flagIsFetch != 0 {
			flags = fi.Atomic | fi.Read
		}
	}
	in.host.End(Ended{Context: req.context, Flags: flags, Work: req.work, Total: req.total, Status: status,
		Completes: req.flags&flagCompletes != 0, Asked: req.flags&flagAsked != 0})
	req.live.Store(0)
	in.requests.Free(id)
}

// PeerLost ends the operations that wait for a peer that is gone, or for room on the way to it. Those of a device end
// as its commands do.
func (pr *Protocol) PeerLost(number uint32, status fi.Errno) {
	in := pr.in
	l := in.host.Link(number)
	pr.answers.PeerLost(number, status)
	l.flow.drop(status)
	l.flow = nil
	in.requests.Range(func(id uint64, req *Request) {
		// the link is valid once live is
		if req.live.Load() == uint32(id>>32) && req.link == l.Index && in.claim(id) {
			pr.end(req, id, status)
		}
	})
	pr.takeQueued()
	pr.unanswered = 0
	pr.waiting.Step(func(at *uint64) bool {
		id := *at
		req, ok := in.requests.Lookup(id)
		if !ok || req.link != l.Index || req.flags&flagByDevice != 0 {
			return false
		}
		if req.flags&flagSegmented == 0 {
			in.allSent(l)
		}
		pr.end(req, id, status)
		return true
	})
}
