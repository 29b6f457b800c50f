package main

// #include "goapi.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

//export weftGoEQOpen
func weftGoEQOpen(
	fabric C.uint64_t, attr *C.struct_fi_eq_attr, self unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_eq_open", &rc)
	f, err := objectOf[*provider.Fabric](fabric)
	if err != nil {
		return result(err)
	}
	o := (*C.struct_weft_eq_obj)(self)
	of := (*C.struct_weft_fabric_obj)(fidOf(f))
	o.api_version = C.uint32_t(of.fid.api_version)
	waitSet, err := prepare(&o.wait, attr.wait_obj, attr.wait_set)
	if err != nil {
		return result(err)
	}
	q, err := f.OpenEQ(&fi.EQAttr{
		Size: uint64(attr.size), Flags: uint64(attr.flags), WaitObj: fi.WaitObj(attr.wait_obj),
		SignalingVector: int(attr.signaling_vector), WaitSet: waitSet,
	})
	if err != nil {
		return result(err)
	}
	if out.handle, err = enter(q); err != nil {
		return result(err)
	}
	setFID(q, self)
	host := of.host
	q.ShowInfo(func(i *fi.Info) (uintptr, error) { return showInfo(host, i) },
		func(addr uintptr) { freeInfo(host, addr) })
	connect(q.Waiter(), &o.wait)
	return 0
}

// Reads return the number of bytes.
//
//export weftGoEQRead
func weftGoEQRead(queue C.uint64_t, event *C.uint32_t, buf unsafe.Pointer, size C.size_t,
	flags C.uint64_t) (rc C.int64_t) {
	defer guard("fi_eq_read", &rc)
	q, err := objectOf[*eq.Queue](queue)
	if err != nil {
		return C.int64_t(result(err))
	}
	return readResult(event)(q.Read(view[byte](buf, size), uint64(flags)))
}

//export weftGoEQSRead
func weftGoEQSRead(queue C.uint64_t, event *C.uint32_t, buf unsafe.Pointer, size C.size_t, timeout C.int,
	flags C.uint64_t) (rc C.int64_t) {
	defer guard("fi_eq_sread", &rc)
	q, err := objectOf[*eq.Queue](queue)
	if err != nil {
		return C.int64_t(result(err))
	}
	if q.Waiter().Kind() == fi.WaitNone {
		return C.int64_t(result(fi.ENOSYS))
	}
	return readResult(event)(q.SReadSignaled(view[byte](buf, size), int(timeout), uint64(flags)))
}

// readResult returns what hands the result of a read to C: the event's number, and
// the bytes of its entry or an error.
func readResult(event *C.uint32_t) func(number uint32, n int, err error) C.int64_t {
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

// errEntryBefore15 is how much of the entry there was before API 1.5.
const errEntryBefore15 = unsafe.Offsetof(C.struct_fi_eq_err_entry{}.err_data_size)

// Returns the bytes of the entry. Error data goes into the application's buffer, or by reference into the queue's
// object.
//
//export weftGoEQReadErr
func weftGoEQReadErr(queue C.uint64_t, to *C.struct_fi_eq_err_entry, flags C.uint64_t) (rc C.int64_t) {
	defer guard("fi_eq_readerr", &rc)
	q, err := objectOf[*eq.Queue](queue)
	if err != nil {
		return C.int64_t(result(err))
	}
	e, err := q.ReadErr(uint64(flags))
	if err != nil {
		return C.int64_t(result(err))
	}
	o := (*C.struct_weft_eq_obj)(fidOf(q))
	known := C.size_t(C.sizeof_struct_fi_eq_err_entry)
	if uint32(o.api_version) < fi.Version(1, 5) {
		known = C.size_t(errEntryBefore15)
	}
	entry := C.struct_fi_eq_err_entry{data: C.uint64_t(e.Data), err: C.int(e.Err), prov_errno: C.int(e.ProvErrno)}
	storeAddr(unsafe.Pointer(&entry.fid), uint64(e.FID))
	storeAddr(unsafe.Pointer(&entry.context), e.Context)
	data := unsafe.Slice((*byte)(&o.err_data[0]), len(o.err_data))
	sized := known == C.sizeof_struct_fi_eq_err_entry
	if sized && to.err_data != nil && to.err_data_size != 0 {
		data = view[byte](to.err_data, to.err_data_size)
	}
	data = data[:copy(data, e.ErrData)]
	if entry.err_data = unsafe.Pointer(unsafe.SliceData(data)); sized {
		entry.err_data_size = C.size_t(len(data))
	}
	copy(view[byte](unsafe.Pointer(to), known), view[byte](unsafe.Pointer(&entry), known))
	return C.int64_t(known)
}

//export weftGoEQWrite
func weftGoEQWrite(queue C.uint64_t, event C.uint32_t, buf unsafe.Pointer, size C.size_t,
	flags C.uint64_t) (rc C.int64_t) {
	defer guard("fi_eq_write", &rc)
	q, err := objectOf[*eq.Queue](queue)
	if err != nil {
		return C.int64_t(result(err))
	}
	n, err := q.Write(uint32(event), view[byte](buf, size), uint64(flags))
	if err != nil {
		return C.int64_t(result(err))
	}
	return C.int64_t(n)
}
