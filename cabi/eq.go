package main

// #include "goapi.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

//export weftGoEQOpen
func weftGoEQOpen(fabric C.uint64_t, attr *C.struct_fi_eq_attr, set C.uint64_t,
	native *C.struct_weft_wait_native, out *C.struct_weft_opened) (rc C.int) {
	defer guard("fi_eq_open", &rc)
	f, err := objectOf[*provider.Fabric](fabric)
	if err != nil {
		return result(err)
	}
	waitSet, err := optional[*cq.WaitSet](set)
	if err != nil {
		return result(err)
	}
	q, err := f.OpenEQ(&fi.EQAttr{
		Size: uint64(attr.size), Flags: uint64(attr.flags),
		WaitObj: fi.WaitObj(attr.wait_obj), SignalingVector: int(attr.signaling_vector), WaitSet: waitSet,
	})
	if err != nil {
		return result(err)
	}
	if out.handle, err = enter(q); err != nil {
		return result(err)
	}
	connect(q.Waiter(), native, out)
	return 0
}

//export weftGoEQRead
func weftGoEQRead(queue C.uint64_t, event *C.uint32_t, buf unsafe.Pointer, n C.size_t, flags C.uint64_t) (rc C.int64_t) {
	defer guard("fi_eq_read", &rc)
	q, err := objectOf[*eq.Queue](queue)
	if err != nil {
		return C.int64_t(result(err))
	}
	return eventResult(event)(q.Read(view[byte](buf, n), uint64(flags)))
}

//export weftGoEQSRead
func weftGoEQSRead(queue C.uint64_t, event *C.uint32_t, buf unsafe.Pointer, n C.size_t, timeout C.int,
	flags C.uint64_t) (rc C.int64_t) {
	defer guard("fi_eq_sread", &rc)
	q, err := objectOf[*eq.Queue](queue)
	if err != nil {
		return C.int64_t(result(err))
	}
	return eventResult(event)(q.SRead(view[byte](buf, n), int(timeout), uint64(flags)))
}

// eventResult returns a function that stores an event's number and returns the
// size of its entry.
func eventResult(event *C.uint32_t) func(number uint32, n int, err error) C.int64_t {
	return func(number uint32, n int, err error) C.int64_t {
		if err != nil {
			return C.int64_t(result(err))
		}
		if event != nil {
			*event = C.uint32_t(number)
		}
		return C.int64_t(n)
	}
}

//export weftGoEQReadErr
func weftGoEQReadErr(queue C.uint64_t, entry *C.struct_fi_eq_err_entry, flags C.uint64_t) (rc C.int64_t) {
	defer guard("fi_eq_readerr", &rc)
	q, err := objectOf[*eq.Queue](queue)
	if err != nil {
		return C.int64_t(result(err))
	}
	e, err := q.ReadErr(uint64(flags))
	if err != nil {
		return C.int64_t(result(err))
	}
	entry.fid = (*C.struct_fid)(unsafe.Pointer(e.FID))
	entry.context = unsafe.Pointer(uintptr(e.Context))
	entry.data = C.uint64_t(e.Data)
	entry.err = C.int(e.Err)
	entry.prov_errno = C.int(e.ProvErrno)
	entry.err_data_size = 0
	return C.int64_t(unsafe.Sizeof(*entry))
}

//export weftGoEQWrite
func weftGoEQWrite(queue C.uint64_t, event C.uint32_t, buf unsafe.Pointer, n C.size_t, flags C.uint64_t) (rc C.int64_t) {
	defer guard("fi_eq_write", &rc)
	q, err := objectOf[*eq.Queue](queue)
	if err != nil {
		return C.int64_t(result(err))
	}
	written, err := q.Write(uint32(event), view[byte](buf, n), uint64(flags))
	if err != nil {
		return C.int64_t(result(err))
	}
	return C.int64_t(written)
}
