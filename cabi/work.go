package main

// #include "work.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider"
	"github.com/weft-fabric/weft/provider/atomics"
)

// condition returns what an operation with flags waits for, which its context
// says if it has fi.Trigger. Errors: fi.EINVAL for a context without a counter
// of weft's, fi.ENOSYS for other events than thresholds.
func condition(flags, context C.uint64_t) (provider.Threshold, error) {
	if uint64(flags)&fi.Trigger == 0 {
		return provider.Threshold{}, nil
	}
	var counter, threshold C.uint64_t
	if rc := C.weft_trigger_condition(context, &counter, &threshold); rc != 0 {
		log.Warnf(log.EPData, "the context %#x of a triggered operation names no threshold of a counter of weft's", uint64(context))
		return provider.Threshold{}, fi.Errno(-rc)
	}
	c, err := objectOf[*cq.Counter](counter)
	return provider.Threshold{Counter: c, Value: uint64(threshold)}, err
}

// At most one of the operations is not NULL; without one it is an operation on a counter.
//
//export weftGoQueueWork
func weftGoQueueWork(domain C.uint64_t, w *C.struct_weft_work, send *C.struct_weft_send_args, recv *C.struct_weft_recv_args,
	rma *C.struct_weft_rma_args, atomic *C.struct_weft_atomic_args) (rc C.int) {
	defer guard("fi_control FI_QUEUE_WORK", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	work := provider.Work{User: uint64(w.user), Value: uint64(w.value), Add: w.add != 0}
	work.On.Value = uint64(w.threshold)
	if work.On.Counter, err = objectOf[*cq.Counter](w.cntr); err != nil {
		return result(err)
	}
	if work.Done, err = optional[*cq.Counter](w.done); err != nil {
		return result(err)
	}
	if work.Counter, err = optional[*cq.Counter](w.operand); err != nil {
		return result(err)
	}
	if work.EP, err = optional[*provider.Endpoint](w.ep); err != nil {
		return result(err)
	}
	none := provider.Threshold{}
	switch {
	case send != nil:
		s := sendArgs(send, none)
		work.Send = &s
	case recv != nil:
		r := recvArgs(recv, none)
		work.Recv = &r
	case rma != nil:
		r := rmaArgs(rma, none)
		work.RMA = &r
	case atomic != nil:
		a := atomicArgs(atomic, none)
		work.Atomic = &a
	}
	return result(d.QueueWork(&work))
}

//export weftGoCancelWork
func weftGoCancelWork(domain, user C.uint64_t) (rc C.int) {
	defer guard("fi_control FI_CANCEL_WORK", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	return result(d.CancelWork(uint64(user)))
}

//export weftGoFlushWork
func weftGoFlushWork(domain, counter C.uint64_t) (rc C.int) {
	defer guard("fi_control FI_FLUSH_WORK", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	c, err := optional[*cq.Counter](counter)
	if err != nil {
		return result(err)
	}
	return result(d.FlushWork(c))
}

// sendArgs and its like turn what C gives into Go's. The vectors are looked at
// during the call only.
func sendArgs(a *C.struct_weft_send_args, on provider.Threshold) provider.SendArgs {
	return provider.SendArgs{
		IOV:     view[fi.IOVec](unsafe.Pointer(a.iov), C.size_t(a.count)),
		Dest:    fi.Addr(a.dest),
		Tag:     uint64(a.tag),
		Data:    uint64(a.data),
		Flags:   uint64(a.flags),
		Context: uint64(a.context),
		Tagged:  a.kind&C.WEFT_POST_TAGGED != 0,
		HasData: a.kind&C.WEFT_POST_DATA != 0,
		Inject:  a.kind&C.WEFT_POST_INJECT != 0,
		On:      on,
	}
}

func recvArgs(a *C.struct_weft_recv_args, on provider.Threshold) provider.RecvArgs {
	return provider.RecvArgs{
		IOV:     view[fi.IOVec](unsafe.Pointer(a.iov), C.size_t(a.count)),
		Src:     fi.Addr(a.src),
		Tag:     uint64(a.tag),
		Ignore:  uint64(a.ignore),
		Flags:   uint64(a.flags) &^ hot.RecvTagged,
		Context: uint64(a.context),
		Tagged:  uint64(a.flags)&hot.RecvTagged != 0,
		On:      on,
	}
}

func rmaArgs(a *C.struct_weft_rma_args, on provider.Threshold) provider.RMAArgs {
	return provider.RMAArgs{
		IOV:     view[fi.IOVec](unsafe.Pointer(a.iov), C.size_t(a.count)),
		Remote:  view[fi.RMAIOVec](unsafe.Pointer(a.remote), C.size_t(a.remote_count)),
		Dest:    fi.Addr(a.dest),
		Data:    uint64(a.data),
		Flags:   uint64(a.flags),
		Context: uint64(a.context),
		Read:    a.kind&C.WEFT_POST_READ != 0,
		HasData: a.kind&C.WEFT_POST_DATA != 0,
		Inject:  a.kind&C.WEFT_POST_INJECT != 0,
		On:      on,
	}
}

func atomicArgs(a *C.struct_weft_atomic_args, on provider.Threshold) provider.AtomicArgs {
	return provider.AtomicArgs{
		Kind:     atomics.Kind(a.kind),
		Op:       fi.Op(a.op),
		Datatype: fi.Datatype(a.datatype),
		Operand:  view[fi.IOVec](unsafe.Pointer(&a.operand), C.size_t(a.operands)),
		Compare:  view[fi.IOVec](unsafe.Pointer(&a.compare), C.size_t(a.compares)),
		Result:   view[fi.IOVec](unsafe.Pointer(&a.result), C.size_t(a.results)),
		Remote:   view[fi.RMAIOVec](unsafe.Pointer(&a.remote), C.size_t(a.remotes)),
		Dest:     fi.Addr(a.dest),
		Flags:    uint64(a.flags),
		Context:  uint64(a.context),
		Inject:   a.inject != 0,
		On:       on,
	}
}
