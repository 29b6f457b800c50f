package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// Reading a completion queue. A read with completions on the queue takes them (pop, gotEntries). Else it makes progress
// (progress), which writes into the reader, and reads the queue again.

// Values of Poll.Phase of a read.
const (
	readBegin   = iota
	readFlushed // the runtime has moved completions to the rings
	readPass    // progress is made
	readCorked  // corked messages of transports are sent
	readTimers  // the timers run, after completions were read
	readNone    // of no entries: the runtime has moved completions to the rings
	readSlept   // the thread has slept
)

// Read reads a completion queue (fi_cq_read, fi_cq_readfrom), and makes progress where there is nothing to read. With
// no room for entries it only makes progress: programs do so between tries to send, so there is some even when an error
// is next. at is the address of a hot.Poll, the result one of its codes or of hot.Delivery.
func Read(at, _, _, _ uintptr) uintptr {
	p := (*hot.Poll)(pointer(at))
	if p.Phase == readBegin && p.Flags == hot.PollWork {
		return deliverFound(p)
	}
	if p.Phase == phaseIdle {
		return idle(p)
	}
	if p.Flags&hot.PollDue != 0 {
		due(p)
	}
	if code := read(p); code != hot.DeliveryDone {
		return code
	}
	return endPoll(p)
}

// deliverFound is the first step of a read of an empty queue where Try has found an endpoint with work.
func deliverFound(p *hot.Poll) uintptr {
	found := p.At
	p.Room = p.Reader.Left
	beginPass(p, (*hot.CQ)(pointer(p.Reader.CQ)))
	p.At, p.Flags = found, 0
	ep := endpointAt(found)
	if ep == nil { // the list was written again
		return endRead(p, next)
	}
	code := passOn(p, ep)
	if got := p.Room - p.Reader.Left; code == next && got != 0 {
		return gotRead(p, got)
	}
	return endRead(p, code)
}

// nothing is -FI_EAGAIN: there is nothing to read and nothing to do.
const nothing = ^uintptr(fi.EAGAIN - 1)

// Try takes what is on a completion queue, for a poll that is not due, or finds whether there is something to do at the
// queue's endpoints: most reads find nothing, and end with that. at is the address of a hot.Reader, self that of the
// thread's hot.Thread; with 0 and a list of endpoints, eps, it does so at those. It counts the poll at the endpoints
// that have nothing. The result is an entry of the list of endpoints, a negative errno, or as hot.Try* says. What it
// asks of an endpoint is the condition of hasWork, which the compiler does not inline here: by a call of that, or of a
// function for both, an empty poll would take 7 instructions more.
//
//go:nosplit
func Try(at, self, eps, _ uintptr) uintptr {
	if at != 0 {
		to := (*hot.Reader)(pointer(at))
		q := (*hot.CQ)(pointer(to.CQ))
		if !cqring.Empty(q) {
			return tryPop(to, q, (*hot.Thread)(pointer(self)))
		}
		if atomic.LoadUint64(&q.Overflow) != 0 {
			return hot.TryRead
		}
		eps = atomic.LoadUintptr(&q.EPs)
	}
	if eps == 0 {
		return nothing
	}
	for {
		ep := endpointAt(eps)
		if ep == nil {
			return nothing
		}
		countPoll(ep)
		rings := ringsInUse(ep)
		if firstArrived(ep, rings) || more(ep, rings) && elsewhere(ep, self) {
			return eps
		}
		eps += unsafe.Sizeof(eps)
	}
}

// tryPop is Try of a queue with something on its rings. An error, and corked messages, are Read's.
func tryPop(to *hot.Reader, q *hot.CQ, t *hot.Thread) uintptr {
	room := to.Left
	if room == 0 || corks(q) {
		return hot.TryRead
	}
	if pop(q, to); to.Left == room {
		return hot.TryRead
	}
	restart(t)
	return uintptr(room-to.Left)<<hot.TryShift | hot.TryEntries
}

// beginPass begins the pass of a read over the endpoints of its queue.
func beginPass(p *hot.Poll, q *hot.CQ) {
	p.Phase, p.Direct = readPass, 1
	start(p, atomic.LoadUintptr(&q.EPs))
}

// gotRead is endRead of a read that is not due and has got entries. Most reads that get a message end by it: by endRead
// they would take 46 instructions more.
func gotRead(p *hot.Poll, got uint64) uintptr {
	p.Result = int64(got)
	restart((*hot.Thread)(pointer(p.Thread)))
	return hot.DeliveryDone
}

// endRead goes on with the code of a read's first pass.
func endRead(p *hot.Poll, code uintptr) uintptr {
	if code == next {
		code = progressed(p, (*hot.CQ)(pointer(p.Reader.CQ)))
	}
	if code != hot.DeliveryDone {
		return code
	}
	return endPoll(p)
}

func read(p *hot.Poll) uintptr {
	q := (*hot.CQ)(pointer(p.Reader.CQ))
	switch p.Phase {
	case readBegin:
		return beginRead(p, q)
	case readPass:
		if code := progress(p); code != next {
			return code
		}
		return progressed(p, q)
	case readCorked, readTimers:
		return afterEntries(p)
	case readNone:
		return failedOr(p, q)
	}
	return readAgain(p, q)
}

// beginRead is the first step of a read.
func beginRead(p *hot.Poll, q *hot.CQ) uintptr {
	if p.Room = p.Reader.Left; p.Room != 0 {
		failed := pop(q, &p.Reader)
		switch {
		case p.Reader.Left != p.Room:
			return gotEntries(p, q)
		case failed:
			return result(p, -int64(fi.EAVAIL))
		case atomic.LoadUint64(&q.Overflow) != 0:
			p.Phase = readFlushed
			return hot.PollFlush
		}
	}
	beginPass(p, q)
	if code := pass(p); code != next {
		return code
	}
	return progressed(p, q)
}

// progressed goes on when progress is made.
func progressed(p *hot.Poll, q *hot.CQ) uintptr {
	switch {
	case p.Reader.Left != p.Room:
		return result(p, int64(p.Room-p.Reader.Left))
	case p.Room == 0:
		return readNothing(p, q)
	case p.Found == 0:
		return result(p, -int64(fi.EAGAIN))
	}
	return readAgain(p, q)
}

// readAgain ends a read with what is on the queue now.
func readAgain(p *hot.Poll, q *hot.CQ) uintptr {
	failed := pop(q, &p.Reader)
	switch {
	case p.Reader.Left != p.Room:
		return result(p, int64(p.Room-p.Reader.Left))
	case failed:
		return result(p, -int64(fi.EAVAIL))
	}
	return result(p, -int64(fi.EAGAIN))
}

// result ends a read with a result, that of fi_cq_read.
func result(p *hot.Poll, result int64) uintptr {
	p.Result, p.Found = result, 0
	if result > 0 {
		p.Found = 1
	}
	return hot.DeliveryDone
}

// gotEntries goes on when completions were read from the queue. Corked messages of transports are sent first: their
// completions may be among those, and an application that has read them may not poll again. With PollFoundToo progress
// is made as well, so that an application that always finds completions serves its peers.
func gotEntries(p *hot.Poll, q *hot.CQ) uintptr {
	corked := corks(q)
	if !corked && p.Flags&hot.PollFoundToo == 0 {
		return result(p, int64(p.Room-p.Reader.Left))
	}
	start(p, atomic.LoadUintptr(&q.EPs))
	p.Direct, p.Phase = 0, readTimers
	if corked && resume((*hot.Thread)(pointer(p.Thread))) { // else the word stays, so that the next read tries again
		order.Store32(&q.Corked, 0)
		p.Phase = readCorked
	}
	return afterEntries(p)
}

// corks reports whether a message that completes on the queue may be corked at a transport.
func corks(q *hot.CQ) bool { return atomic.LoadUint32(&q.Corked) != 0 }

// afterEntries is what gotEntries does in phases readCorked and readTimers; the result is a code for the shim.
func afterEntries(p *hot.Poll) uintptr {
	if p.Phase == readCorked {
		if code := flushTransports(p); code != next {
			return code
		}
		pause((*hot.Thread)(pointer(p.Thread)))
		p.Phase, p.At = readTimers, p.EPs
	}
	if p.Flags&hot.PollFoundToo != 0 {
		if code := progress(p); code != next {
			return code
		}
	}
	return result(p, int64(p.Room-p.Reader.Left))
}

// flushTransports has the shim send what is corked at transports, one after the other. Only queues and endpoints that
// one thread at a time uses have corked messages.
func flushTransports(p *hot.Poll) uintptr {
	if p.EPs == 0 {
		return next
	}
	for {
		ep := endpointAt(p.At)
		if ep == nil {
			return next
		}
		p.At += unsafe.Sizeof(p.At)
		if ep.Transport != 0 {
			p.Transport = ep.Transport
			return hot.PollFlushTransport
		}
	}
}

// readNothing ends a read of no entries, behind its progress: completions off the rings are moved to them first.
func readNothing(p *hot.Poll, q *hot.CQ) uintptr {
	p.Phase = readNone
	if atomic.LoadUint64(&q.Overflow) != 0 {
		return hot.PollFlush
	}
	return failedOr(p, q)
}

// failedOr ends a read of no entries: -FI_EAVAIL if an error is next in a ring, else -FI_EAGAIN.
func failedOr(p *hot.Poll, q *hot.CQ) uintptr {
	p.Result = -int64(fi.EAGAIN)
	for n := range q.NRings {
		if cqring.Of(q, n).Failed() {
			p.Result = -int64(fi.EAVAIL)
		}
	}
	return hot.DeliveryDone
}

// pop takes completions off a queue, as many as the reader has room for, up to an error. It reports whether it got none
// because an error is next. The compiler puts what it calls into it where it is a function of its own.
//
//go:noinline
func pop(q *hot.CQ, to *hot.Reader) bool {
	b := cqring.Begin(q, to.Left)
	for b.Next(q) {
		for r := cqring.Of(q, b.N); b.Head != b.End; b.Head++ {
			put(to, q.Format, r.At(b.Head))
			r.Release(b.Head)
		}
	}
	return b.Failed()
}

// SRead is Read that sleeps until there are Want entries, the reader is full, the time is over or the queue is signaled
// or has an error; then it ends with what there is. at and the result are as Read has them.
func SRead(at, _, _, _ uintptr) uintptr {
	p := (*hot.Poll)(pointer(at))
	if p.Phase == phaseIdle {
		return idle(p)
	}
	if p.Flags&hot.PollDue != 0 {
		due(p)
	}
	if code := sread(p); code != hot.DeliveryDone {
		return code
	}
	return endPoll(p)
}

func sread(p *hot.Poll) uintptr {
	switch p.Phase {
	case readBegin:
		p.Begin = p.Reader.Left
	case readSlept:
		if p.Result = int64(p.Answer); p.Answer != 0 {
			return sreadEnded(p)
		}
		p.Phase = readBegin
	}
	if code := read(p); code != hot.DeliveryDone {
		return code
	}
	more := p.Result > 0 || p.Result == -int64(fi.EAGAIN)
	if more && p.Reader.Left != 0 && p.Begin-p.Reader.Left < max(p.Want, 1) {
		p.Phase = readSlept
		return hot.PollSleep
	}
	return sreadEnded(p)
}

// sreadEnded ends an SRead: with the number of entries that were read, if any, else with the result at hand.
func sreadEnded(p *hot.Poll) uintptr {
	if got := p.Begin - p.Reader.Left; got != 0 {
		p.Result = int64(got)
	}
	return hot.DeliveryDone
}
