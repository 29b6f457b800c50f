package main

// #include "goapi.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

//export weftGoWaitOpen
func weftGoWaitOpen(
	fabric C.uint64_t, attr *C.struct_fi_wait_attr, self unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_wait_open", &rc)
	f, err := objectOf[*provider.Fabric](fabric)
	if err != nil {
		return result(err)
	}
	native := &(*C.struct_weft_wait_obj)(self).wait
	if rc := C.weft_wait_prepare(native, attr.wait_obj); rc != 0 {
		return rc
	}
	w, err := f.OpenWait(&fi.WaitAttr{WaitObj: fi.WaitObj(attr.wait_obj), Flags: uint64(attr.flags)})
	if err != nil {
		return result(err)
	}
	if out.handle, err = enter(w); err != nil {
		return result(err)
	}
	connect(w, native)
	return 0
}

//export weftGoWait
func weftGoWait(set C.uint64_t, timeout C.int) (rc C.int) {
	defer guard("fi_wait", &rc)
	w, err := objectOf[*cq.WaitSet](set)
	if err != nil {
		return result(err)
	}
	return result(w.Wait(int(timeout)))
}

//export weftGoTryWait
func weftGoTryWait(object C.uint64_t) (rc C.int) {
	defer guard("fi_trywait", &rc)
	entered()
	w, err := objectOf[interface{ TryWait() error }](object)
	if err != nil {
		return result(err)
	}
	return result(w.TryWait())
}

//export weftGoPollOpen
func weftGoPollOpen(
	domain C.uint64_t, attr *C.struct_fi_poll_attr, _ unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_poll_open", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	if attr != nil && attr.flags != 0 {
		return result(fi.EBADFLAGS)
	}
	p, err := d.OpenPoll()
	if err != nil {
		return result(err)
	}
	out.handle, err = enter(p)
	return result(err)
}

// Stores the contexts of what has something and returns their number.
//
//export weftGoPoll
func weftGoPoll(poll C.uint64_t, contexts *unsafe.Pointer, count C.int) (rc C.int) {
	defer guard("fi_poll", &rc)
	if count < 0 || count != 0 && contexts == nil {
		return result(fi.EINVAL)
	}
	p, err := objectOf[*cq.PollSet](poll)
	if err != nil {
		return result(err)
	}
	return C.int(p.Poll(view[uint64](unsafe.Pointer(contexts), C.size_t(count))))
}

//export weftGoPollAdd
func weftGoPollAdd(poll C.uint64_t, object *C.struct_fid, flags C.uint64_t, _ *C.struct_weft_poll_obj) (rc C.int) {
	defer guard("fi_poll_add", &rc)
	p, o, err := pollPair(poll, C.weft_handle_of(object))
	if err != nil {
		return result(err)
	}
	if flags != 0 {
		return result(fi.EBADFLAGS)
	}
	return result(p.Add(o, uint64(uintptr(object.context))))
}

//export weftGoPollDel
func weftGoPollDel(poll, object, flags C.uint64_t) (rc C.int) {
	defer guard("fi_poll_del", &rc)
	p, o, err := pollPair(poll, object)
	if err != nil {
		return result(err)
	}
	if flags != 0 {
		return result(fi.EBADFLAGS)
	}
	return result(p.Remove(o))
}

// pollPair returns a poll set and an object that can be in one.
func pollPair(poll, object C.uint64_t) (*cq.PollSet, cq.Polled, error) {
	p, err := objectOf[*cq.PollSet](poll)
	if err != nil {
		return nil, nil, err
	}
	o, err := objectOf[cq.Polled](object)
	return p, o, err
}
