package main

// #include <rdma/fi_trigger.h>
// #include "goapi.h"
// #include "posting.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider"
)

// condition returns what an operation with flags waits for, which its context
// says if it has fi.Trigger. Errors: fi.EINVAL for a context without a counter
// of weft's, fi.ENOSYS for other events than thresholds.
func condition(flags, context C.uint64_t) (provider.Threshold, error) {
	if uint64(flags)&fi.Trigger == 0 {
		return provider.Threshold{}, nil
	}
	on, err := thresholdOf(*(**C.struct_fi_triggered_context)(unsafe.Pointer(&context)))
	if err != nil {
		log.Warnf(log.EPData, "the context %#x of a triggered operation names no threshold of a counter of weft's",
			uint64(context))
	}
	return on, err
}

func thresholdOf(t *C.struct_fi_triggered_context) (provider.Threshold, error) {
	switch {
	case t == nil:
		return provider.Threshold{}, fi.EINVAL
	case t.event_type == C.FI_TRIGGER_XPU:
		return provider.Threshold{}, fi.ENOSYS
	case t.event_type != C.FI_TRIGGER_THRESHOLD:
		return provider.Threshold{}, fi.EINVAL
	}
	on := (*C.struct_fi_trigger_threshold)(unsafe.Pointer(&t.trigger))
	c, err := counterOf(on.cntr)
	if err == nil && c == nil {
		err = fi.EINVAL
	}
	return provider.Threshold{Counter: c, Value: uint64(on.threshold)}, err
}

// counterOf returns the counter of an application's object, nil for NULL; fi.EINVAL if it is none of weft's.
func counterOf(c *C.struct_fid_cntr) (*cq.Counter, error) {
	if c == nil {
		return nil, nil
	}
	return objectOf[*cq.Counter](C.weft_handle_of(&c.fid))
}

func endpointOf(e *C.struct_fid_ep) (provider.WorkEndpoint, error) {
	if e == nil {
		return nil, fi.EINVAL
	}
	return objectOf[provider.WorkEndpoint](C.weft_handle_of(&e.fid))
}

// Deferred work (fi_trigger(3)); no other commands.
//
//export weftGoDomainControl
func weftGoDomainControl(domain C.uint64_t, command C.int, arg unsafe.Pointer) (rc C.int) {
	defer guard("fi_control", &rc)
	d, err := objectOf[*provider.Domain](domain)
	switch {
	case err != nil:
	case command == C.FI_QUEUE_WORK:
		err = queueWork(d, (*C.struct_fi_deferred_work)(arg))
	case command == C.FI_CANCEL_WORK && arg == nil:
		err = fi.EINVAL
	case command == C.FI_CANCEL_WORK:
		err = d.CancelWork(uint64(uintptr(arg)))
	case command == C.FI_FLUSH_WORK:
		var c *cq.Counter
		if c, err = counterOf((*C.struct_fid_cntr)(arg)); err == nil {
			err = d.FlushWork(c)
		}
	default:
		err = fi.ENOSYS
	}
	return result(err)
}

func queueWork(d *provider.Domain, w *C.struct_fi_deferred_work) error {
	if w == nil || w.triggering_cntr == nil {
		return fi.EINVAL
	}
	work := provider.Work{User: uint64(uintptr(unsafe.Pointer(w)))}
	work.On.Value = uint64(w.threshold)
	var err error
	if work.On.Counter, err = counterOf(w.triggering_cntr); err != nil {
		return err
	}
	if work.Done, err = counterOf(w.completion_cntr); err != nil {
		return err
	}
	set := setOp(w.op_type)
	if set == nil {
		return fi.ENOSYS
	}
	op := *(*unsafe.Pointer)(unsafe.Pointer(&w.op))
	if op == nil {
		return fi.EINVAL
	}
	if err := set(&work, op, w.op_type); err != nil {
		return err
	}
	return d.QueueWork(&work)
}

// setOp returns what enters an operation of a type, which is not NULL, in its work; nil for types that there are not.
func setOp(operation C.enum_fi_op_type) func(w *provider.Work, op unsafe.Pointer, operation C.enum_fi_op_type) error {
	switch operation {
	case C.FI_OP_SEND, C.FI_OP_RECV:
		return setMsg
	case C.FI_OP_TSEND, C.FI_OP_TRECV:
		return setTagged
	case C.FI_OP_READ, C.FI_OP_WRITE:
		return setRMA
	case C.FI_OP_ATOMIC, C.FI_OP_FETCH_ATOMIC, C.FI_OP_COMPARE_ATOMIC:
		return setAtomic
	case C.FI_OP_CNTR_SET, C.FI_OP_CNTR_ADD:
		return setCounter
	}
	return nil
}

func setMsg(w *provider.Work, op unsafe.Pointer, operation C.enum_fi_op_type) error {
	o := (*C.struct_fi_op_msg)(op)
	whole := C.struct_fi_op_tagged{ep: o.ep, flags: o.flags, msg: C.struct_fi_msg_tagged{
		msg_iov: o.msg.msg_iov, desc: o.msg.desc, iov_count: o.msg.iov_count, addr: o.msg.addr, context: o.msg.context,
		data: o.msg.data,
	}}
	return setMessage(w, &whole, operation == C.FI_OP_SEND, false)
}

func setTagged(w *provider.Work, op unsafe.Pointer, operation C.enum_fi_op_type) error {
	return setMessage(w, (*C.struct_fi_op_tagged)(op), operation == C.FI_OP_TSEND, true)
}

func setMessage(w *provider.Work, o *C.struct_fi_op_tagged, send, tagged bool) (err error) {
	if w.EP, err = endpointOf(o.ep); err != nil {
		return err
	}
	if uint64(o.flags)&recvPrivate != 0 {
		return fi.EBADFLAGS
	}
	p := C.struct_weft_post{
		buf: unsafe.Pointer(o.msg.msg_iov), len: C.uint64_t(o.msg.iov_count), desc: o.msg.desc,
		kind: hot.PostVector | onDevice(o.msg.desc, o.msg.iov_count),
	}
	iov, err := local(w.EP, &p)
	if err != nil {
		return err
	}
	context := uint64(uintptr(o.msg.context))
	if send {
		w.Send = &provider.SendArgs{
			IOV: iov, Dest: fi.Addr(o.msg.addr), Tag: uint64(o.msg.tag), Data: uint64(o.msg.data),
			Flags:   uint64(o.flags),
			Context: context, Tagged: tagged, HasData: o.flags&C.FI_REMOTE_CQ_DATA != 0,
		}
	} else {
		w.Recv = &provider.RecvArgs{
			IOV: iov, Src: fi.Addr(o.msg.addr), Tag: uint64(o.msg.tag), Ignore: uint64(o.msg.ignore),
			Flags:   uint64(o.flags),
			Context: context, Tagged: tagged,
		}
	}
	return nil
}

func setRMA(w *provider.Work, op unsafe.Pointer, operation C.enum_fi_op_type) (err error) {
	o := (*C.struct_fi_op_rma)(op)
	if w.EP, err = endpointOf(o.ep); err != nil {
		return err
	}
	p := C.struct_weft_post{
		buf: unsafe.Pointer(o.msg.msg_iov), len: C.uint64_t(o.msg.iov_count), dest: C.uint64_t(o.msg.addr),
		remote: unsafe.Pointer(o.msg.rma_iov), remotes: C.uint64_t(o.msg.rma_iov_count), data: C.uint64_t(o.msg.data),
		flags: o.flags, context: C.uint64_t(uintptr(o.msg.context)), desc: o.msg.desc,
		kind: hot.PostVector | hot.PostRemote | onDevice(o.msg.desc, o.msg.iov_count),
	}
	switch {
	case operation == C.FI_OP_READ:
		p.kind |= hot.PostRead
	case o.flags&C.FI_REMOTE_CQ_DATA != 0:
		p.kind |= hot.PostData
	}
	args, err := rmaArgs(w.EP, new(room), &p)
	w.RMA = &args
	return err
}

func setAtomic(w *provider.Work, op unsafe.Pointer, operation C.enum_fi_op_type) (err error) {
	// Each structure begins as the next longer one does, but for the flags behind it.
	o := (*C.struct_fi_op_compare_atomic)(op)
	p := C.struct_weft_post{
		buf: unsafe.Pointer(o.msg.msg_iov), len: C.uint64_t(o.msg.iov_count), dest: C.uint64_t(o.msg.addr),
		remote: unsafe.Pointer(o.msg.rma_iov), remotes: C.uint64_t(o.msg.rma_iov_count), op: C.uint32_t(o.msg.op),
		datatype: C.uint32_t(o.msg.datatype), context: C.uint64_t(uintptr(o.msg.context)), desc: o.msg.desc,
		kind: hot.PostVector | hot.PostRemote | onDevice(o.msg.desc, o.msg.iov_count),
	}
	switch operation {
	case C.FI_OP_ATOMIC:
		p.flags = (*C.struct_fi_op_atomic)(op).flags
	case C.FI_OP_FETCH_ATOMIC:
		p.atomic, p.flags = hot.AtomicFetch, (*C.struct_fi_op_fetch_atomic)(op).flags
	default:
		p.atomic, p.flags = hot.AtomicCompare, o.flags
		p.compare, p.compares = unsafe.Pointer(o.compare.msg_iov), C.uint64_t(o.compare.iov_count)
		p.compare_desc = o.compare.desc
		p.kind |= onDevice(o.compare.desc, o.compare.iov_count)
	}
	if p.atomic != hot.AtomicPlain {
		p.result, p.results = unsafe.Pointer(o.fetch.msg_iov), C.uint64_t(o.fetch.iov_count)
		p.result_desc = o.fetch.desc
		p.kind |= onDevice(o.fetch.desc, o.fetch.iov_count)
	}
	if w.EP, err = endpointOf(o.ep); err != nil {
		return err
	}
	a, err := atomicArgs(new(room), &p)
	if err == nil && p.kind&hot.PostDevice != 0 {
		err = translateAtomic(w.EP.Domain(), &a, &p)
	}
	w.Atomic = &a
	return err
}

// onDevice is hot.PostDevice if one of n buffers is memory of a device, as its descriptor says.
func onDevice(desc *unsafe.Pointer, n C.size_t) C.uint32_t { return C.weft_on_device(desc, n) }

func setCounter(w *provider.Work, op unsafe.Pointer, operation C.enum_fi_op_type) (err error) {
	o := (*C.struct_fi_op_cntr)(op)
	if o.cntr == nil {
		return fi.EINVAL
	}
	w.Value, w.Add = uint64(o.value), operation == C.FI_OP_CNTR_ADD
	w.Counter, err = counterOf(o.cntr)
	return err
}
