package main

// #include "goapi.h"
// #include "peer.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider"
)

//export weftGoCntrOpen
func weftGoCntrOpen(
	domain C.uint64_t, attr *C.struct_fi_cntr_attr, self unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_cntr_open", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	o := (*C.struct_weft_cntr_obj)(self)
	switch {
	case attr == nil:
		attr = &C.struct_fi_cntr_attr{wait_obj: C.FI_WAIT_NONE}
	case attr.flags&C.FI_PEER != 0: // the owner does the waiting
		if attr.events == C.enum_fi_cntr_events(fi.CntrEventsBytes) { // the owner's takes one at a time
			log.Warnf(log.Domain, "fi_cntr_open: FI_PEER with events %d, of bytes", uint32(attr.events))
			return result(fi.ENOSYS)
		}
		if rc := C.weft_peer_cntr_import(o); rc != 0 {
			return rc
		}
		attr = &C.struct_fi_cntr_attr{events: attr.events, flags: attr.flags &^ C.FI_PEER}
	}
	waitSet, err := prepare(&o.wait, attr.wait_obj, attr.wait_set)
	if err != nil {
		return result(err)
	}
	a := &fi.CntrAttr{Events: fi.CntrEvents(attr.events), WaitObj: fi.WaitObj(attr.wait_obj), Flags: uint64(attr.flags)}
	c, err := d.OpenCounter(a, waitSet)
	if err != nil {
		return result(err)
	}
	if out.handle, err = enter(c); err != nil {
		return result(err)
	}
	c.Hot().Handle = uint64(out.handle)
	o.hot = (*C.struct_weft_hot_cntr)(unsafe.Pointer(c.Hot()))
	connect(c.Waiter(), &o.wait)
	return 0
}

// change runs f on a counter.
func change(counter C.uint64_t, f func(*cq.Counter)) C.int {
	c, err := objectOf[*cq.Counter](counter)
	if err != nil {
		return result(err)
	}
	f(c)
	return 0
}

//export weftGoCntrAdd
func weftGoCntrAdd(counter, value C.uint64_t) (rc C.int) {
	defer guard("fi_cntr_add", &rc)
	return change(counter, func(c *cq.Counter) { c.Add(uint64(value)) })
}

//export weftGoCntrSet
func weftGoCntrSet(counter, value C.uint64_t) (rc C.int) {
	defer guard("fi_cntr_set", &rc)
	return change(counter, func(c *cq.Counter) { c.Set(uint64(value)) })
}

//export weftGoCntrAddErr
func weftGoCntrAddErr(counter, value C.uint64_t) (rc C.int) {
	defer guard("fi_cntr_adderr", &rc)
	return change(counter, func(c *cq.Counter) { c.AddErr(uint64(value)) })
}

//export weftGoCntrSetErr
func weftGoCntrSetErr(counter, value C.uint64_t) (rc C.int) {
	defer guard("fi_cntr_seterr", &rc)
	return change(counter, func(c *cq.Counter) { c.SetErr(uint64(value)) })
}

// Returns 0 when the value has reached the threshold, -FI_ETIMEDOUT, or -FI_EAVAIL when the error value changes.
//
//export weftGoCntrWait
func weftGoCntrWait(counter, threshold C.uint64_t, timeout C.int) (rc C.int) {
	defer guard("fi_cntr_wait", &rc)
	entered()
	c, err := objectOf[*cq.Counter](counter)
	if err != nil {
		return result(err)
	}
	return result(c.Wait(uint64(threshold), int(timeout)))
}
