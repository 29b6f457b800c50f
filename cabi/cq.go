package main

// #include "goapi.h"
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

// connect tells C about a wait object, and the wait object whom to wake: the
// threads that wait on the condition variable of native.
func connect(w waker, native *C.struct_weft_wait_native, out *C.struct_weft_opened) {
	out.wait_obj = C.enum_fi_wait_obj(w.Kind())
	out.fd = C.int(w.FD())
	if w.Kind() == fi.WaitMutexCond {
		w.OnWake(func() { C.weft_wait_signal(native) })
	}
}

// native is to be signaled for FI_WAIT_MUTEX_COND.
//
//export weftGoCQOpen
func weftGoCQOpen(domain C.uint64_t, attr *C.struct_fi_cq_attr, set C.uint64_t,
	native *C.struct_weft_wait_native, out *C.struct_weft_opened) (rc C.int) {
	defer guard("fi_cq_open", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	waitSet, err := optional[*cq.WaitSet](set)
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
	out.hot = unsafe.Pointer(q.Hot())
	connect(q.Waiter(), native, out)
	return 0
}

//export weftGoCQReadErr
func weftGoCQReadErr(queue C.uint64_t, c *C.struct_fi_cq_err_entry, src *C.uint64_t) (rc C.int) {
	defer guard("fi_cq_readerr", &rc)
	q, err := objectOf[*cq.Queue](queue)
	if err != nil {
		return result(err)
	}
	e, err := q.ReadErr()
	if err != nil {
		return result(err)
	}
	C.weft_err_set_addrs(c, C.uint64_t(e.Context), C.uint64_t(e.Buf))
	c.flags = C.uint64_t(e.Flags)
	c.len = C.size_t(e.Len)
	c.data = C.uint64_t(e.Data)
	c.tag = C.uint64_t(e.Tag)
	c.olen = C.size_t(e.OLen)
	c.err = C.int(e.Err)
	c.prov_errno = C.int(e.ProvErrno)
	c.err_data, c.err_data_size = errData(e.ErrData, c.err_data, c.err_data_size)
	*src = C.uint64_t(e.Src)
	return 0
}

// errData gives error data to an application: into its buffer of room bytes, or
// if it has none by reference to data, which is off the Go heap and stays until
// the queue is read again.
func errData(data []byte, buf unsafe.Pointer, room C.size_t) (unsafe.Pointer, C.size_t) {
	if room != 0 && buf != nil {
		return buf, C.size_t(copy(view[byte](buf, room), data))
	}
	return unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data))
}

// Returns 0 when there is a reason to look again, -FI_EAGAIN when timeout ms (negative: for ever) have passed.
//
//export weftGoCQWait
func weftGoCQWait(queue C.uint64_t, timeout C.int) (rc C.int) {
	defer guard("fi_cq_sread", &rc)
	q, err := objectOf[*cq.Queue](queue)
	if err != nil {
		return result(err)
	}
	return result(q.Wait(int(timeout)))
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
