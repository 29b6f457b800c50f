package main

// #include "goapi.h"
// #include "hotpath.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider"
)

// What the data plane leaves to the runtime (posting.c, poll.c). None of these functions allocates.

//export weftGoSend
func weftGoSend(ep C.uint64_t, a *C.struct_weft_send_args) (rc C.int64_t) {
	defer guard("send", &rc)
	e, ok := handles.get(uint64(ep)).(*provider.Endpoint)
	if !ok {
		return C.int64_t(fi.EINVAL.Code())
	}
	on, err := condition(a.flags, a.context)
	if err != nil {
		return C.int64_t(result(err))
	}
	s := sendArgs(a, on)
	return C.int64_t(result(e.Send(&s)))
}

// rxOf returns the receive context of a handle: a shared one, or that of an
// endpoint. nil if it is stale.
func rxOf(h C.uint64_t) *provider.RxContext {
	switch o := handles.get(uint64(h)).(type) {
	case *provider.Endpoint:
		return o.Rx()
	case *provider.SharedRx:
		return o.Rx()
	}
	return nil
}

//export weftGoRecv
func weftGoRecv(rx C.uint64_t, a *C.struct_weft_recv_args) (rc C.int64_t) {
	defer guard("recv", &rc)
	r := rxOf(rx)
	if r == nil {
		return C.int64_t(fi.EINVAL.Code())
	}
	on, err := condition(a.flags, a.context)
	if err != nil {
		return C.int64_t(result(err))
	}
	args := recvArgs(a, on)
	return C.int64_t(result(r.PostRecv(&args)))
}

// Makes progress; the caller holds the lease. Returns whether triggers have fired: then weftGoTriggered, without the
// lease, posts what waited.
//
//export weftGoProgress
func weftGoProgress(rx C.uint64_t) C.bool {
	defer guardVoid("progress")
	r := rxOf(rx)
	return C.bool(r != nil && r.Progress())
}

// As weftGoProgress, and the timers and dead peers too.
//
//export weftGoHousekeeping
func weftGoHousekeeping(rx C.uint64_t) C.bool {
	defer guardVoid("housekeeping")
	r := rxOf(rx)
	return C.bool(r != nil && r.Housekeeping())
}

// Completes transmit request of an endpoint with a status, as the peer that is source says.
//
//export weftGoAck
func weftGoAck(ep C.uint64_t, source C.uint32_t, request, status C.uint64_t) {
	defer guardVoid("acknowledgement")
	if e, ok := handles.get(uint64(ep)).(*provider.Endpoint); ok {
		e.Acknowledged(uint32(source), uint64(request), uint64(status))
	}
}

// Acknowledges a source's request as soon as there is room.
//
//export weftGoAcknowledge
func weftGoAcknowledge(ep C.uint64_t, source C.uint32_t, request C.uint64_t) {
	defer guardVoid("acknowledge")
	if e, ok := handles.get(uint64(ep)).(*provider.Endpoint); ok {
		e.Acknowledge(uint32(source), uint64(request))
	}
}

// Gives a message to the receive that it has matched; see weft_delivery_code.
//
//export weftGoGiveMessage
func weftGoGiveMessage(ep C.uint64_t, d *C.struct_weft_delivery) {
	defer guardVoid("give message")
	if e, ok := handles.get(uint64(ep)).(*provider.Endpoint); ok {
		e.Settle((*hot.Delivery)(unsafe.Pointer(d)))
	}
}

// Writes a completion to a queue whose ring is full.
//
//export weftGoCompleteReceive
func weftGoCompleteReceive(ep C.uint64_t, d *C.struct_weft_delivery) {
	defer guardVoid("complete receive")
	if e, ok := handles.get(uint64(ep)).(*provider.Endpoint); ok {
		e.Deliver((*hot.Delivery)(unsafe.Pointer(d)))
	}
}

//export weftGoTriggered
func weftGoTriggered(rx C.uint64_t) {
	defer guardVoid("triggered operations")
	if r := rxOf(rx); r != nil {
		r.Triggered()
	}
}

//export weftGoWakePeer
func weftGoWakePeer(ep C.uint64_t, peer C.uint32_t) {
	defer guardVoid("wake peer")
	if e, ok := handles.get(uint64(ep)).(*provider.Endpoint); ok {
		e.WakePeer(uint32(peer))
	}
}

//export weftGoWakeCQ
func weftGoWakeCQ(queue C.uint64_t) {
	defer guardVoid("wake completion queue")
	if q, ok := handles.get(uint64(queue)).(*cq.Queue); ok {
		q.Wake()
	}
}

//export weftGoWakeCntr
func weftGoWakeCntr(counter C.uint64_t) {
	defer guardVoid("wake counter")
	if c, ok := handles.get(uint64(counter)).(*cq.Counter); ok {
		c.Wake()
	}
}

// Of a transmit.
//
//export weftGoComplete
func weftGoComplete(q, context, flags C.uint64_t) {
	defer guardVoid("fi_send")
	if c, ok := handles.get(uint64(q)).(*cq.Queue); ok {
		c.Complete(cq.Entry{Context: uint64(context), Flags: uint64(flags), Src: fi.AddrNotAvail})
	}
}

// Completions held off the rings.
//
//export weftGoFlushCQ
func weftGoFlushCQ(queue C.uint64_t) {
	defer guardVoid("flush completion queue")
	if q, ok := handles.get(uint64(queue)).(*cq.Queue); ok {
		q.FlushOverflow()
	}
}
