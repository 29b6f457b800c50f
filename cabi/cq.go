package main

// #include "goapi.h"
// #include "peer.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

// waker is a wait object as cq and eq have them.
type waker interface {
	Kind() fi.WaitObj
	FD() int
	OnWake(f func())
}

// connect gives C a wait object, and the wait object what it is to wake: the
// threads that wait on the condition variable of native.
func connect(w waker, native *C.struct_weft_wait_native) {
	native.fd = C.int(w.FD())
	if native.kind == C.FI_WAIT_UNSPEC {
		native.kind = C.enum_fi_wait_obj(w.Kind())
	}
	if w.Kind() == fi.WaitMutexCond {
		w.OnWake(func() { C.weft_wait_signal(native) })
	}
}

// prepare sets the wait object of a new object up, of a kind that attributes ask for, and returns the wait set that
// they name with FI_WAIT_SET.
func prepare(native *C.struct_weft_wait_native, kind C.enum_fi_wait_obj, set *C.struct_fid_wait) (*cq.WaitSet, error) {
	var waitSet *cq.WaitSet
	if kind == C.FI_WAIT_SET {
		var err error
		if waitSet, err = objectOf[*cq.WaitSet](C.weft_wait_set_of(set)); err != nil {
			return nil, err
		}
	}
	if status := errnoOf(C.weft_wait_prepare(native, kind)); status != fi.Success {
		return nil, status
	}
	return waitSet, nil
}

// Of a queue that another provider has imported the owner reads all that a completion has, and does the waiting.
//
//export weftGoCQOpen
func weftGoCQOpen(
	domain C.uint64_t, attr *C.struct_fi_cq_attr, self unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_cq_open", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	o := (*C.struct_weft_cq_obj)(self)
	o.domain = (*C.struct_weft_domain_obj)(fidOf(d))
	if attr.flags&C.FI_PEER != 0 {
		if rc := C.weft_peer_cq_import(o); rc != 0 {
			return rc
		}
		attr = &C.struct_fi_cq_attr{size: attr.size, flags: attr.flags &^ C.FI_PEER, format: C.FI_CQ_FORMAT_TAGGED}
	}
	o.wait_cond = attr.wait_cond
	waitSet, err := prepare(&o.wait, attr.wait_obj, attr.wait_set)
	if err != nil {
		return result(err)
	}
	a := &fi.CQAttr{
		Size: uint64(attr.size), Flags: uint64(attr.flags), Format: fi.CQFormat(attr.format),
		WaitObj: fi.WaitObj(attr.wait_obj), SignalingVector: int(attr.signaling_vector),
		WaitCond: fi.CQWaitCond(attr.wait_cond),
	}
	q, err := d.OpenCQ(a, waitSet)
	if err != nil {
		return result(err)
	}
	if out.handle, err = enter(q); err != nil {
		return result(err)
	}
	q.Hot().Handle = uint64(out.handle)
	attr.format = C.enum_fi_cq_format(a.Format)
	o.hot = (*C.struct_weft_hot_cq)(unsafe.Pointer(q.Hot()))
	connect(q.Waiter(), &o.wait)
	return 0
}

//export weftGoCQReadErr
func weftGoCQReadErr(queue C.uint64_t, c *C.struct_fi_cq_err_entry, src *C.uint64_t) (rc C.int) {
	defer guard("fi_cq_readerr", &rc)
	entered()
	q, err := objectOf[*cq.Queue](queue)
	if err != nil {
		return result(err)
	}
	var e cq.ErrEntry
	own := c.err_data != nil && c.err_data_size != 0
	if own {
		e, err = q.ReadErrInto(view[byte](c.err_data, c.err_data_size))
	} else {
		e, err = q.ReadErr()
	}
	if err != nil {
		return result(err)
	}
	storeAddr(unsafe.Pointer(&c.op_context), e.Context)
	storeAddr(unsafe.Pointer(&c.buf), e.Buf)
	c.flags = C.uint64_t(e.Flags)
	c.len = C.size_t(e.Len)
	c.data = C.uint64_t(e.Data)
	c.tag = C.uint64_t(e.Tag)
	c.olen = C.size_t(e.OLen)
	c.err = C.int(e.Err)
	c.prov_errno = C.int(e.ProvErrno)
	if c.err_data_size = C.size_t(len(e.ErrData)); !own { // by reference to what is off the Go heap
		c.err_data = unsafe.Pointer(unsafe.SliceData(e.ErrData))
	}
	*src = C.uint64_t(e.Src)
	return 0
}

//export weftGoCQSignal
func weftGoCQSignal(queue C.uint64_t) (rc C.int) {
	defer guard("fi_cq_signal", &rc)
	q, err := objectOf[*cq.Queue](queue)
	if err != nil {
		return result(err)
	}
	return result(q.Signal())
}
