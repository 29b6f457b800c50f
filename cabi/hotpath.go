package main

// #include "goapi.h"
// #include "posting.h"
import "C"

import (
	"cmp"
	"slices"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider"
)

// What the data plane leaves to the runtime (posting.c, poll.c). None of these functions allocates.

// Posts what the data plane does not: an operation as one of its functions takes it. code is what that returned.
//
//export weftGoPost
func weftGoPost(ep C.uint64_t, function C.uint32_t, p *C.struct_weft_post, code C.uint32_t) (rc C.int64_t) {
	defer guard("transfer", &rc)
	if function != hot.PlaneReceive { // that is counted below
		entered()
	}
	if code == hot.PostReturn {
		if e, ok := handles.get(uint64(ep)).(*provider.MatchedEndpoint); ok {
			e.TakeBack((*hot.Post)(unsafe.Pointer(p)))
		}
		if p.sent == hot.PathFull {
			return C.int64_t(fi.EAGAIN.Code())
		}
	}
	switch {
	case function == hot.PlaneReceive:
		return weftGoRecv(ep, nil, p, code)
	case function == hot.PlaneNote:
		return C.int64_t(result(postNote(ep, p)))
	case function == hot.PlaneList && (p.kind&hot.PostListed == 0 || p.note != nil):
		return C.int64_t(result(postList(p, code)))
	}
	object, ok := handles.get(uint64(ep)).(endpoint)
	if !ok {
		return C.int64_t(fi.EINVAL.Code())
	}
	if function != hot.PlaneRMA && function != hot.PlaneList && function != hot.PlaneAtomic {
		return C.int64_t(result(postSend(object, p)))
	}
	post := postRMA
	if function == hot.PlaneAtomic {
		post = postAtomic
	}
	return C.int64_t(result(post(object, p)))
}

func postSend(e endpoint, p *C.struct_weft_post) error {
	on, err := condition(p.flags, p.context)
	if err != nil {
		return err
	}
	iov, err := local(e, p)
	if err != nil {
		return err
	}
	switch e := e.(type) { // the arguments are on the stack where no interface is called
	case *provider.Endpoint:
		return e.Send(sendArgs(p, iov, on))
	case *provider.MatchedEndpoint:
		return e.Send(sendArgs(p, iov, on))
	}
	return e.Send(sendArgs(p, iov, on))
}

// sendArgs turns an application's arguments into Go's.
func sendArgs(p *C.struct_weft_post, iov []fi.IOVec, on provider.Threshold) *provider.SendArgs {
	return &provider.SendArgs{
		IOV: iov, Dest: fi.Addr(p.dest), Tag: uint64(p.header), Data: uint64(p.data), Flags: uint64(p.flags),
		Context: uint64(p.context), Tagged: p.kind&hot.PostTagged != 0, HasData: p.kind&hot.PostData != 0,
		Inject: p.kind&hot.PostInject != 0, Thread: uint32(p.thread), On: on,
	}
}

// local returns the buffers of an operation, which are read during the call only. Memory of a device has the
// addresses by which Go knows it. Errors: fi.EINVAL for a vector that is NULL.
func local(o domained, p *C.struct_weft_post) ([]fi.IOVec, error) {
	iov := unsafe.Slice((*fi.IOVec)(unsafe.Pointer(&p.buf)), 1)
	if p.kind&hot.PostVector != 0 {
		if p.buf == nil && p.len != 0 {
			return nil, fi.EINVAL
		}
		iov = view[fi.IOVec](p.buf, C.size_t(p.len))
	}
	if p.kind&hot.PostDevice == 0 {
		return iov, nil
	}
	iov = slices.Clone(iov)
	return iov, translate(o.Domain(), iov, p.desc)
}

// rxOf returns the receive context of what has a handle: a shared one, or that of an
// endpoint. nil if there is none.
func rxOf(object any) *provider.RxContext {
	switch o := object.(type) {
	case *provider.Endpoint:
		return o.Rx()
	case *provider.SharedRx:
		return o.Rx()
	}
	return nil
}

// recvPrivate are bits of a receive's flags that only weft may set.
const recvPrivate = hot.RecvTagged | hot.RecvIOV | hot.RecvCancel | hot.RecvWork | hot.RecvDevice

// Does what the data plane's code for a receive says: posts it through an endpoint or context, to the receive context
// rx, NULL if that has none, or wakes the progress thread.
//
//export weftGoRecv
func weftGoRecv(object C.uint64_t, rx *C.struct_weft_hot_rx, p *C.struct_weft_post, code C.uint32_t) (rc C.int64_t) {
	defer guard("recv", &rc)
	entered()
	if rx == nil {
		o := handles.get(uint64(object))
		if e, ok := o.(*provider.MatchedEndpoint); ok {
			return C.int64_t(result(postMatchedRecv(e, p)))
		}
		return C.int64_t(result(cmp.Or(noReceives(o), error(fi.EOPBADSTATE))))
	}
	r := rxOf(handles.get(uint64(rx.handle)))
	switch {
	case r == nil:
		return C.int64_t(fi.EINVAL.Code())
	case code == hot.PostBell:
		r.Ring()
		return 0
	}
	o, err := objectOf[domained](object)
	if err == nil {
		err = postRecv(r, o, p)
	}
	return C.int64_t(result(err))
}

// noReceives is why none can be posted to an object; shared contexts take them once they are open.
func noReceives(object any) error {
	if e, ok := object.(*provider.Endpoint); ok {
		return provider.NoReceives(e)
	}
	return nil
}

// Counts the receives for which there is room on the post ring, a lower bound.
//
//export weftGoRxSizeLeft
func weftGoRxSizeLeft(object C.uint64_t) (rc C.int64_t) {
	defer guard("fi_rx_size_left", &rc)
	o := handles.get(uint64(object))
	if err := noReceives(o); err != nil {
		return C.int64_t(result(err))
	}
	if e, ok := o.(*provider.MatchedEndpoint); ok {
		return C.int64_t(e.PostRoom())
	}
	r := rxOf(o)
	if r == nil {
		return C.int64_t(fi.EINVAL.Code())
	}
	return C.int64_t(r.PostRoom())
}

// domained is what has a domain.
type domained interface{ Domain() *provider.Domain }

func postRecv(r *provider.RxContext, o domained, p *C.struct_weft_post) error {
	args, err := recvArgs(o, p)
	if err != nil {
		return err
	}
	return r.PostRecv(&args)
}

func postMatchedRecv(e *provider.MatchedEndpoint, p *C.struct_weft_post) error {
	args, err := recvArgs(e, p)
	if err != nil {
		return err
	}
	return e.PostRecv(&args)
}

// recvArgs turns an application's arguments into Go's. The vector is read during the call only.
func recvArgs(o domained, p *C.struct_weft_post) (args provider.RecvArgs, err error) {
	if uint64(p.flags)&recvPrivate != 0 {
		return args, fi.EBADFLAGS
	}
	on, err := condition(p.flags, p.context)
	if err != nil {
		return args, err
	}
	var iov []fi.IOVec
	if uint64(p.flags)&hot.RecvNoBuffer == 0 {
		if iov, err = local(o, p); err != nil {
			return args, err
		}
	}
	return provider.RecvArgs{
		IOV: iov, Src: fi.Addr(p.dest), Tag: uint64(p.header), Ignore: uint64(p.data), Flags: uint64(p.flags),
		Context: uint64(p.context), Tagged: p.kind&hot.PostTagged != 0, On: on,
	}, nil
}

// Does what is left when an operation is posted: to write a completion that found no room, to wake threads, to post
// what waited for a counter.
//
//export weftGoAfterPost
func weftGoAfterPost(p *C.struct_weft_post) {
	defer guardVoid("end of a post")
	entered()
	ep := p.ep
	if p.todo&hot.TodoComplete != 0 {
		if q, ok := handles.get(uint64(ep.tx_cq.handle)).(*cq.Queue); ok {
			q.CompletePost(1+int(p.thread&ep.stripe_mask),
				cq.Entry{Context: uint64(p.context), Flags: uint64(p.completion), Src: fi.AddrNotAvail})
		}
	}
	if p.todo&hot.TodoWakeCQ != 0 {
		wakeQueue(ep.tx_cq)
	}
	if p.todo&hot.TodoWakeCntr != 0 {
		wakeCounter(p.cntr)
	}
	e, ok := handles.get(uint64(ep.handle)).(*provider.Endpoint)
	if !ok {
		return
	}
	if p.todo&hot.TodoPeerLost != 0 {
		e.PeerLost()
	}
	if p.todo&hot.TodoWakePeer != 0 {
		e.WakePeer(uint32(p.peer))
	}
	if p.todo&hot.TodoTriggered != 0 {
		e.Rx().Triggered()
	}
}

// Does what a poll asks for by a code, but for what the shim does itself. The lease is taken where the code says so.
// PollProgress is a runtime poll: the data plane has left arrivals, or there is work that no ring shows.
//
//export weftGoForPoll
func weftGoForPoll(p *C.struct_weft_poll, code C.uint32_t) {
	defer guardVoid("progress")
	if code != hot.PollTimers {
		entered()
	}
	dataplane.LeaveGate((*hot.Poll)(unsafe.Pointer(p)))
	switch code {
	case hot.PollProgress, hot.PollTimers, hot.PollTriggered:
		p.answer = 0
		o := handles.get(uint64(p.handle))
		if e, ok := o.(*provider.MatchedEndpoint); ok {
			p.answer = onContext[*provider.LeasedMatched](e, code)
		} else if rx := rxOf(o); rx != nil {
			p.answer = onContext[*provider.LeasedRx](rx, code)
		}
	case hot.PollMatched:
		e, ok := handles.get(uint64(p.handle)).(*provider.MatchedEndpoint)
		if ok && e.Leased().MatchedEvent((*hot.MatchEvent)(unsafe.Pointer(&p.match))) {
			p.delivery.todo |= hot.TodoTriggered
		}
	case hot.PollFlush:
		if q, ok := handles.get(uint64(p.reader.cq.handle)).(*cq.Queue); ok {
			q.FlushOverflow()
		}
	case hot.PollSleep:
		p.answer = C.int32_t(fi.EOTHER.Code())
		p.answer = C.int32_t(sleep(p))
	case hot.PollWake:
		wakeReaders(&p.delivery)
	default:
		switch e := handles.get(uint64(p.delivery.ep.handle)).(type) {
		case *provider.Endpoint:
			e.Rx().Leased().Serve(e, (*hot.Delivery)(unsafe.Pointer(&p.delivery)), uintptr(code))
		case *provider.MatchedEndpoint:
			if code == hot.DeliveryComplete {
				e.Deliver((*hot.Delivery)(unsafe.Pointer(&p.delivery)))
			}
		}
	}
}

// progressed is what a progress lease protects: a receive context, or an endpoint with a device that matches its
// messages.
type progressed interface {
	Progress() bool
	Housekeeping() bool
}

// guarded is what has progressed behind its lease.
type guarded[L progressed] interface {
	Leased() L
	Triggered()
}

// onContext is what a poll asks for of a receive context. 1: triggers have fired, and PollTriggered, without the lease,
// posts what waited for them.
func onContext[L progressed](rx guarded[L], code C.uint32_t) C.int32_t {
	fired := false
	switch code {
	case hot.PollProgress:
		fired = rx.Leased().Progress()
	case hot.PollTimers:
		fired = rx.Leased().Housekeeping()
	case hot.PollTriggered:
		rx.Triggered()
	}
	if fired {
		return 1
	}
	return 0
}

// loaded is where the clock of sleeps begins.
var loaded = time.Now()

// sleep sleeps until there is a reason to read the queue again (0), or the time of the call is over (-FI_EAGAIN).
func sleep(p *C.struct_weft_poll) C.int {
	q, err := objectOf[*cq.Queue](p.reader.cq.handle)
	if err != nil {
		return result(err)
	}
	timeout := int(p.timeout)
	if timeout > 0 {
		now := time.Since(loaded).Milliseconds() + 1
		if p.start == 0 {
			p.start = C.int64_t(now)
		}
		timeout = int(max(int64(p.start)+int64(timeout)-now, 0))
	}
	return result(q.Wait(timeout))
}

// wakeReaders wakes the threads that wait for what a delivery has completed.
func wakeReaders(d *C.struct_weft_delivery) {
	if d.todo&hot.TodoWakeCQ != 0 {
		wakeQueue(d.ep.rx_cq)
	}
	if d.todo&hot.TodoWakeCntr != 0 {
		wakeCounter(d.ep.rx_cntr)
	}
	if d.todo&hot.TodoWakeTxCQ != 0 {
		wakeQueue(d.ep.tx_cq)
	}
	if d.todo&hot.TodoWakeReadCntr != 0 {
		wakeCounter(d.ep.read_cntr)
	}
	if d.todo&hot.TodoWakeTxCntr != 0 {
		wakeCounter(d.ep.tx_cntr)
	}
	if d.todo&hot.TodoWakeWriteCntr != 0 {
		wakeCounter(d.ep.write_cntr)
	}
}

func wakeQueue(queue *C.struct_weft_hot_cq) {
	if q, ok := handles.get(uint64(queue.handle)).(*cq.Queue); ok {
		q.Wake()
	}
}

func wakeCounter(counter *C.struct_weft_hot_cntr) {
	if c, ok := handles.get(uint64(counter.handle)).(*cq.Counter); ok {
		c.Wake()
	}
}
