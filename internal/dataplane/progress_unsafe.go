package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/race"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// Progress at a list of endpoints: for each, is there work (withWork), take the lease, take in what is on the inbound
// rings (deliverRings) or at the transport to other hosts (askTransport), leave the rest to the runtime (leaveToGo),
// give the lease back. Each function returns next when it is done, or a code for the shim, which calls again; Poll.Step
// says where to go on.

// timerMillis is how often the timers (dead peers, connection time-outs) run while progress has work that no ring
// shows; else it is the receive context's rest, if that is more.
const timerMillis = 20

// Values of Poll.Step: what progress does next at the endpoint at hand.
const (
	stepCheck          = iota // is there work?
	stepDeliver               // take in arrivals in shared memory
	stepDelivered             // arrivals are taken in, and sleepers are woken
	stepTransportFound        // the transport has answered Next
	stepTransportGiven        // its message is delivered
	stepTransportTaken        // the transport has answered Take: the message is done with
	stepTransportEnd          // sleepers on what the transport's messages completed are woken
	stepProgressed            // the runtime has made progress
	stepLeft                  // the endpoint is done with, and triggered operations are posted
	stepTimers                // run the timers of the endpoint at hand
	stepTimed                 // they have run
)

// Progress makes progress at a list of endpoints, and returns a code of hot.Poll or hot.Delivery. at is the address of
// a hot.Poll.
func Progress(at, _, _, _ uintptr) uintptr {
	p := (*hot.Poll)(pointer(at))
	if p.Phase == phaseIdle {
		return idle(p)
	}
	if p.Flags&hot.PollDue != 0 {
		due(p)
	}
	if code := progressAll(p); code != hot.DeliveryDone {
		return code
	}
	return endPoll(p)
}

func progressAll(p *hot.Poll) uintptr {
	if p.Phase == 0 {
		p.Phase, p.Direct = 1, 0
		start(p, p.EPs)
	}
	if code := progress(p); code != next {
		return code
	}
	return hot.DeliveryDone
}

// start begins a pass over a list of endpoints.
func start(p *hot.Poll, eps uintptr) {
	p.EPs, p.At, p.Step, p.Found, p.Ended = eps, eps, stepCheck, 0, 0
}

// endpointAt reads an entry of a list of endpoints once, nil at its end: a replaced list may be written again while it
// is walked.
func endpointAt(at uintptr) *hot.EP {
	return endpoint(atomic.LoadUintptr((*uintptr)(pointer(at))))
}

// progress finds the endpoints that have work and does it. It returns next when the pass has ended, Found says then
// whether there was any; work that another thread does is none. With PollDue it runs the timers when they are due,
// also with work at hand: it may wait for a peer that died.
func progress(p *hot.Poll) uintptr {
	switch {
	case p.Step == stepCheck:
		return pass(p)
	case p.Step >= stepTimers:
		return timers(p)
	}
	if code := work(p); code != next {
		return code
	}
	p.At += unsafe.Sizeof(p.At)
	return pass(p)
}

// pass is progress from the endpoint at hand on, at which nothing is done yet.
func pass(p *hot.Poll) uintptr {
	if p.Ended == 0 {
		return passOn(p, withWork(p))
	}
	return endPass(p)
}

// passOn is pass where ep, the endpoint at hand, is known to have work; nil: no endpoint has.
func passOn(p *hot.Poll, ep *hot.EP) uintptr {
	for ep != nil {
		if code := serveEndpoint(p, ep, context(ep)); code != next {
			return code
		}
		if p.At += unsafe.Sizeof(p.At); p.Ended != 0 || endpointAt(p.At) == nil {
			break
		}
		ep = withWork(p)
	}
	return endPass(p)
}

// endPass runs the timers behind the work of a pass, if they are due.
func endPass(p *hot.Poll) uintptr {
	if p.Flags&hot.PollDue == 0 || p.EPs == 0 {
		return next
	}
	if !timersDue(p) {
		return next
	}
	return timers(p)
}

// timersDue reports whether the timers of an endpoint are due, and prepares the pass that runs them, from that one on.
func timersDue(p *hot.Poll) bool {
	for at := p.EPs; ; at += unsafe.Sizeof(at) {
		ep := endpointAt(at)
		if ep == nil {
			return false
		}
		if rx := context(ep); atomic.LoadUint32(&rx.Lease) == 0 && !resting(rx, p.Now) {
			p.Step, p.At = stepTimers, at
			return true
		}
	}
}

// withWork goes on to the first endpoint of the list, from the one at hand on, at which there is work, and returns it;
// nil: there is none.
func withWork(p *hot.Poll) *hot.EP {
	if p.At == 0 {
		return nil
	}
	for ; ; p.At += unsafe.Sizeof(p.At) {
		ep := endpointAt(p.At)
		if ep == nil || hasWork(ep, p) {
			return ep
		}
	}
}

// hasWork reports whether there is work at an endpoint. It counts the poll there.
func hasWork(ep *hot.EP, p *hot.Poll) bool {
	if p.Flags&hot.PollThread == 0 {
		countPoll(ep)
	}
	rings := ringsInUse(ep)
	return firstArrived(ep, rings) || more(ep, rings) && elsewhere(ep, p.Thread)
}

// countPoll has a progress thread see that the application polls.
func countPoll(ep *hot.EP) {
	if n := atomic.LoadUint32(&ep.Polled); n < hot.PolledEnough {
		order.Store32(&ep.Polled, n+1)
	}
}

// more reports whether there may be work that the first inbound ring does not show. It loads WantPosts and Attention at
// once.
func more(ep *hot.EP, rings uint32) bool {
	return rings > 1 || atomic.LoadUint64((*uint64)(unsafe.Pointer(&context(ep).WantPosts))) != 0
}

// WantPosts and Attention are one word.
var (
	_ [0]struct{} = [unsafe.Offsetof(hot.Rx{}.WantPosts) % 8]struct{}{}
	_ [0]struct{} = [unsafe.Offsetof(hot.Rx{}.Attention) - unsafe.Offsetof(hot.Rx{}.WantPosts) - 4]struct{}{}
)

// elsewhere reports whether there is work that the first inbound ring does not show, where there may be. Of an endpoint
// whose device matches messages it reads the transport's hot.Watch, which the lease guards; a transport that has none
// is to be asked. self is the address of the thread's hot.Thread. Of an endpoint with a gate (hot.Gate) one thread at a
// time reads, which needs no lease: what a control operation does meanwhile changes no word that is read. But one may
// close the endpoint, so the thread is an epoch reader, for which closing waits before the transport is unmapped. Where
// it has no line it cannot be one, and the transport is to be asked.
//
//go:noinline
//go:nosplit
func elsewhere(ep *hot.EP, self uintptr) bool {
	rx := context(ep)
	if rxRings(ep) > 1 && laterArrived(ep) || PostsAreWork(rx) { // most have one ring, and no call for the others
		return true
	}
	attention := atomic.LoadUint32(&rx.Attention)
	if attention != hot.AttentionTransports {
		return attention != 0
	}
	if atomic.LoadUint32(&ep.Flags)&hot.EPGated == 0 {
		return atomic.LoadUintptr(&ep.Match) == 0 || !calmShared(ep, rx)
	}
	t := (*hot.Thread)(pointer(self))
	if !resume(t) {
		return true
	}
	w := watchOf(ep)
	found := w == nil || !w.Calm()
	pause(t)
	return found
}

// serveEndpoint does the work of the endpoint at hand, which delivers into rx, if no other thread is at it. It
// returns next when that is done, else what the shim is to do before. It takes the lease by the steps of lease: the
// compiler does not inline that, and by a call each poll that finds something would take 17 instructions more.
func serveEndpoint(p *hot.Poll, ep *hot.EP, rx *hot.Rx) uintptr {
	if rx.Flags&hot.RxExclusive == 0 && !leaseShared(p, ep, rx) {
		p.Ended = p.Flags & hot.PollThread // a progress thread lets the other one have the processor
		return next
	}
	p.Rx, p.Handle = uintptr(unsafe.Pointer(rx)), rx.Handle
	attention := atomic.LoadUint32(&rx.Attention)
	switch {
	case attention&hot.AttentionTransports == 0:
		return deliverRings(p, ep)
	case attention&hot.AttentionGo != 0:
		return leaveToGo(p, rx)
	case ep.Transport == 0:
		return behindTransport(p, ep, rx)
	}
	if t := matchOf(ep); t != nil {
		return beginMatched(p, ep, rx, t)
	}
	p.Transport, p.Messages, p.ToGo = ep.Transport, 0, 0
	beginDelivery(p, ep)
	return askTransport(p, ep)
}

// ringsInUse is rxRings as senders have written it, of which only 0 and 1 are believed.
func ringsInUse(ep *hot.EP) uint32 { return atomic.LoadUint32((*uint32)(pointer(ep.RxRings))) }

// firstArrived reports whether the first inbound ring has an arrival; most endpoints have no other. rings is what
// ringsInUse returns.
func firstArrived(ep *hot.EP, rings uint32) bool { return rings != 0 && mpsc.Arrived(&ep.Inbound[0]) }

// laterArrived reports whether another inbound ring has an arrival.
func laterArrived(ep *hot.EP) bool {
	at := unsafe.Pointer(&ep.Inbound[1])
	for n := rxRings(ep); n > 1; n-- {
		if mpsc.Arrived((*hot.Inbound)(at)) {
			return true
		}
		at = unsafe.Add(at, unsafe.Sizeof(hot.Inbound{}))
	}
	return false
}

// PostsAreWork reports whether a posted receive is work: unexpected messages, a search or a cancel wait for it. Any
// thread may call it.
func PostsAreWork(rx *hot.Rx) bool {
	return atomic.LoadUint32(&rx.WantPosts) != 0 && mpsc.View(&rx.Posts).Ready(atomic.LoadUint64(&rx.PostsHead))
}

// lease takes the progress lease of the receive context that ep was seen to deliver into; unlease gives it back. An
// exclusive context (FI_THREAD_DOMAIN) has no lease to take.
func lease(p *hot.Poll, ep *hot.EP, rx *hot.Rx) bool {
	if rx.Flags&hot.RxExclusive == 0 && !leaseShared(p, ep, rx) {
		return false
	}
	p.Rx, p.Handle = uintptr(unsafe.Pointer(rx)), rx.Handle
	return true
}

// leaseShared is lease of a context that several threads use. The endpoint may have been closed, and its memory and the
// context's reused, since the list was read: closing takes the context away from the endpoint under the lease, so the
// holder goes on only if the endpoint still has it.
func leaseShared(p *hot.Poll, ep *hot.EP, rx *hot.Rx) bool {
	if !takeLease(p, ep, rx) {
		countBusy(p, ep)
		return false
	}
	if context(ep) != rx {
		unlease(p, rx)
		return false
	}
	return true
}

// takeLease takes the word of a lease: by a store where the thread is alone (hot.Gate).
func takeLease(p *hot.Poll, ep *hot.EP, rx *hot.Rx) bool {
	if atomic.LoadUint32(&rx.Lease) != 0 {
		return false
	}
	if ep.Flags&hot.EPGated != 0 && enterGate(p, ep) {
		order.Store32(&rx.Lease, 1)
	} else if !atomic.CompareAndSwapUint32(&rx.Lease, 0, 1) {
		return false
	}
	race.Acquire(&rx.Lease)
	return true
}

// unlease gives the progress lease back.
func unlease(p *hot.Poll, rx *hot.Rx) {
	if rx.Flags&hot.RxExclusive == 0 {
		unleaseShared(p, rx)
	}
}

// unleaseShared is unlease of a context that several threads use. It leaves the gate that the poll is inside.
// Release ↔ the compare-and-swap in takeLease.
func unleaseShared(p *hot.Poll, rx *hot.Rx) {
	race.Release(&rx.Lease)
	order.Store32(&rx.Lease, 0)
	LeaveGate(p)
}

// countBusy counts that there was work while another thread makes progress. The endpoint may have been closed since the
// list was read, and have no counters or those of another.
func countBusy(p *hot.Poll, ep *hot.EP) {
	if lines := atomic.LoadUintptr(&ep.StatsThreads); lines != 0 {
		countThread(lines, (*hot.Thread)(pointer(p.Thread)).Number-1, stats.ThreadLeaseBusy, 1)
	}
}

// work goes on with the work of the endpoint at hand, whose lease is taken, and gives the lease back when it is done.
func work(p *hot.Poll) uintptr {
	ep, rx := endpointAt(p.At), (*hot.Rx)(pointer(p.Rx))
	switch p.Step {
	case stepDeliver:
		return deliverMore(p)
	case stepDelivered:
		return delivered(p, rx)
	case stepTransportFound, stepTransportGiven, stepTransportTaken, stepTransportEnd:
		return serveTransport(p, ep, rx)
	case stepProgressed:
		unlease(p, rx)
		p.Found = 1
		if p.Answer != 0 {
			p.Step = stepLeft
			return hot.PollTriggered
		}
	}
	return next
}

// leaveToGo has the runtime make progress, with the lease taken: a runtime poll. A progress thread ends its call
// instead: it makes that progress itself, in Go.
func leaveToGo(p *hot.Poll, rx *hot.Rx) uintptr {
	if p.Flags&hot.PollThread != 0 {
		unlease(p, rx)
		p.Ended = 1
		return next
	}
	p.Step = stepProgressed
	return hot.PollProgress
}

// beginDelivery begins a delivery at the endpoint at hand. Completions for the queue that is read go to its reader.
// Fields that it does not set are written before they are read: clearing the whole structure would cost a noticeable
// part of a message's time.
func beginDelivery(p *hot.Poll, ep *hot.EP) {
	d := &p.Delivery
	d.EP, d.Reader, d.TxReader = uintptr(unsafe.Pointer(ep)), 0, 0
	clearDelivery(d)
	if p.Direct == 0 || p.Reader.Left == 0 {
		return
	}
	// while the queue has completions that another thread wrote, those come first
	if q := (*hot.CQ)(pointer(p.Reader.CQ)); !cqring.Exclusive(q) && hasOlder(q) {
		return
	}
	to := uintptr(unsafe.Pointer(&p.Reader))
	if p.Reader.CQ == ep.RxCQ {
		d.Reader = to
	}
	if p.Reader.CQ == ep.TxCQ {
		d.TxReader = to
	}
}

// clearDelivery is what beginDelivery does whatever the endpoint and the reader.
func clearDelivery(d *hot.Delivery) {
	d.Begun, d.Todo, d.Worked, d.After = 0, 0, 0, 0
	d.Messages, d.Bytes, d.Polls, d.Stream = 0, 0, 0, 0
}

// hasOlder reports whether a queue has completions that progress has written, of any thread.
func hasOlder(q *hot.CQ) bool {
	return atomic.LoadUint64(&q.Overflow) != 0 || cqring.Of(q, 0).Readable()
}

// deliverRings takes in what has arrived in shared memory.
func deliverRings(p *hot.Poll, ep *hot.EP) uintptr {
	beginDelivery(p, ep)
	p.Step = stepDeliver
	return deliverMore(p)
}

// deliverMore goes on with a delivery. It may write to peers' segments (acknowledgements, answers), so the thread is an
// epoch reader meanwhile.
func deliverMore(p *hot.Poll) uintptr {
	if !resume((*hot.Thread)(pointer(p.Thread))) {
		return leaveToGo(p, (*hot.Rx)(pointer(p.Rx)))
	}
	d := &p.Delivery
	code := deliver(d)
	pause((*hot.Thread)(pointer(p.Thread)))
	if code != hot.DeliveryDone && code != hot.DeliveryGo {
		return code
	}
	p.ToGo = 0
	if code == hot.DeliveryGo || d.Todo&hot.TodoTriggered != 0 {
		p.ToGo = 1
	}
	p.Step = stepDelivered
	if d.Todo != 0 && wakes(d, endpoint(d.EP)) {
		return hot.PollWake
	}
	return delivered(p, (*hot.Rx)(pointer(p.Rx)))
}

// wakes reports whether threads are to be woken, and leaves in d.Todo which.
func wakes(d *hot.Delivery, ep *hot.EP) bool {
	if d.Todo&hot.TodoWakeCQ != 0 && !wakeNeeded((*hot.CQ)(pointer(ep.RxCQ))) {
		d.Todo &^= hot.TodoWakeCQ
	}
	if d.Todo&hot.TodoWakeTxCQ != 0 && !wakeNeeded((*hot.CQ)(pointer(ep.TxCQ))) {
		d.Todo &^= hot.TodoWakeTxCQ
	}
	const wakes = hot.TodoWakeCQ | hot.TodoWakeTxCQ | hot.TodoWakeCntr | hot.TodoWakeReadCntr | hot.TodoWakeTxCntr |
		hot.TodoWakeWriteCntr
	return d.Todo&wakes != 0
}

// delivered ends the work of an endpoint whose arrivals are taken in.
func delivered(p *hot.Poll, rx *hot.Rx) uintptr {
	if p.ToGo != 0 || atomic.LoadUint32(&rx.Attention)&^hot.AttentionTransports != 0 {
		return leaveToGo(p, rx)
	}
	unlease(p, rx)
	p.Found = 1
	return next
}

// timers has the runtime run the timers of each endpoint of the list whose lease is free and whose timers are due.
func timers(p *hot.Poll) uintptr {
	if p.Step == stepTimed {
		unlease(p, (*hot.Rx)(pointer(p.Rx)))
		p.At += unsafe.Sizeof(p.At)
		if p.Answer != 0 {
			p.Step = stepTimers
			return hot.PollTriggered
		}
	}
	p.Step = stepTimed
	for ; ; p.At += unsafe.Sizeof(p.At) {
		ep := endpointAt(p.At)
		if ep == nil {
			return next
		}
		rx := context(ep)
		if !lease(p, ep, rx) {
			continue
		}
		if !resting(rx, p.Now) {
			order.Store32(&rx.Timers, p.Now)
			p.Found = 1
			return hot.PollTimers
		}
		unlease(p, rx)
	}
}

// resting reports whether the timers of a receive context may rest. The thread that runs them asks with the lease.
func resting(rx *hot.Rx, now uint32) bool {
	rest := rx.Rest
	if rest < timerMillis || atomic.LoadUint32(&rx.Attention)&hot.AttentionGo != 0 {
		rest = timerMillis
	}
	return now-atomic.LoadUint32(&rx.Timers) < rest
}
