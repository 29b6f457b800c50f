package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/cq/cqring"
	"github.com/weft-fabric/weft/fi"
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
	readCorked  // corked messages of ports are sent
	readTimers  // the timers run, after completions were read
	readNone    // of no entries: the runtime has moved completions to the rings
	readSlept   // the thread has slept
)

// Read reads a completion queue (fi_cq_read, fi_cq_readfrom), and makes progress where there is nothing to read. With
// no room for entries it only makes progress: programs do so between tries to send, so there is some even when an error
// is next. p is the address of a hot.Poll, the result one of its codes or of hot.Delivery.
func Read(at, _, _, _ uintptr) uintptr {
	p := (*hot.Poll)(pointer(at))
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

// Pop reads what is on a completion queue, for a poll that is not due. at is the address of a hot.Reader with room,
// self of the thread's hot.Thread. It returns how many entries it has read; 0: Read is to be called, for there is an
// error, nothing on the rings, or a corked message.
func Pop(at, self, _, _ uintptr) uintptr {
	to := (*hot.Reader)(pointer(at))
	q := (*hot.CQ)(pointer(to.CQ))
	room := to.Left
	if corks(q) {
		return 0
	}
	pop(q, to)
	if to.Left != room {
		restart((*hot.Thread)(pointer(self)))
	}
	return uintptr(room - to.Left)
}

func read(p *hot.Poll) uintptr {
	q := (*hot.CQ)(pointer(p.Reader.CQ))
	switch p.Phase {
	case readBegin:
		p.Room, p.Found = p.Reader.Left, 0
		if p.Room != 0 && p.Flags&hot.PollEmpty == 0 {
			failed := pop(q, &p.Reader)
			switch {
			case p.Reader.Left != p.Room:
				return gotEntries(p, q)
			case failed:
				return endRead(p, -int64(fi.EAVAIL))
			case atomic.LoadUint64(&q.Overflow) != 0:
				p.Phase = readFlushed
				return hot.PollFlush
			}
		}
		p.Phase, p.Direct = readPass, 1
		at := p.At
		start(p, atomic.LoadUintptr(&q.EPs))
		if p.Flags&hot.PollWork != 0 {
			p.At = at
		}
		if code := pass(p); code != next {
			return code
		}
		if got := p.Room - p.Reader.Left; got != 0 {
			return endRead(p, int64(got))
		}
		return progressed(p, q)
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

// progressed goes on when progress is made.
func progressed(p *hot.Poll, q *hot.CQ) uintptr {
	switch {
	case p.Reader.Left != p.Room:
		return endRead(p, int64(p.Room-p.Reader.Left))
	case p.Room == 0:
		return readNothing(p, q)
	case p.Found == 0:
		return endRead(p, -int64(fi.EAGAIN))
	}
	return readAgain(p, q)
}

// readAgain ends a read with what is on the queue now.
func readAgain(p *hot.Poll, q *hot.CQ) uintptr {
	failed := pop(q, &p.Reader)
	switch {
	case p.Reader.Left != p.Room:
		return endRead(p, int64(p.Room-p.Reader.Left))
	case failed:
		return endRead(p, -int64(fi.EAVAIL))
	}
	return endRead(p, -int64(fi.EAGAIN))
}

// endRead ends a read with a result, that of fi_cq_read.
func endRead(p *hot.Poll, result int64) uintptr {
	p.Result, p.Found = result, 0
	if result > 0 {
		p.Found = 1
	}
	return hot.DeliveryDone
}

// gotEntries goes on when completions were read from the queue. Corked messages of ports are sent first: their
// completions may be among those, and an application that has read them may not poll again. With PollFoundToo progress
// is made as well, so that an application that always finds completions serves its peers.
func gotEntries(p *hot.Poll, q *hot.CQ) uintptr {
	corked := corks(q)
	if !corked && p.Flags&hot.PollFoundToo == 0 {
		return endRead(p, int64(p.Room-p.Reader.Left))
	}
	start(p, atomic.LoadUintptr(&q.EPs))
	p.Direct, p.Phase = 0, readTimers
	if corked && resume((*hot.Thread)(pointer(p.Thread))) { // else the word stays, so that the next read tries again
		order.Store32(&q.Corked, 0)
		p.Phase = readCorked
	}
	return afterEntries(p)
}

// corks reports whether a message that completes on the queue may be corked at a port.
func corks(q *hot.CQ) bool { return atomic.LoadUint32(&q.Corked) != 0 }

// afterEntries is what gotEntries does in phases readCorked and readTimers; the result is a code for the shim.
func afterEntries(p *hot.Poll) uintptr {
	if p.Phase == readCorked {
		if code := flushPorts(p); code != next {
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
	return endRead(p, int64(p.Room-p.Reader.Left))
}

// flushPorts has the shim send what is corked at ports, one after the other. Only queues and endpoints that one thread
// at a time uses have corked messages.
func flushPorts(p *hot.Poll) uintptr {
	if p.EPs == 0 {
		return next
	}
	for {
		ep := endpointAt(p.At)
		if ep == nil {
			return next
		}
		p.At += unsafe.Sizeof(p.At)
		if ep.Port != 0 {
			p.Port = ep.Port
			return hot.PollFlushPort
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
// because an error is next.
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
// or has an error; then it ends with what there is. p and the result are as Read has them.
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
