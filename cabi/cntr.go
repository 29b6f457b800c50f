package main

// #include "goapi.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

//export weftGoCntrOpen
func weftGoCntrOpen(domain C.uint64_t, attr *C.struct_fi_cntr_attr, set C.uint64_t,
	native *C.struct_weft_wait_native, out *C.struct_weft_opened) (rc C.int) {
	defer guard("fi_cntr_open", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	waitSet, err := optional[*cq.WaitSet](set)
	if err != nil {
		return result(err)
	}
	a := &fi.CntrAttr{}
	if attr != nil {
		a.Events = fi.CntrEvents(attr.events)
		a.WaitObj = fi.WaitObj(attr.wait_obj)
		a.Flags = uint64(attr.flags)
	}
	c, err := d.OpenCounter(a, waitSet)
	if err != nil {
		return result(err)
	}
	if out.handle, err = enter(c); err != nil {
		return result(err)
	}
	c.Hot().Handle = uint64(out.handle)
	out.hot = unsafe.Pointer(c.Hot())
	connect(c.Waiter(), native, out)
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
	c, err := objectOf[*cq.Counter](counter)
	if err != nil {
		return result(err)
	}
	return result(c.Wait(uint64(threshold), int(timeout)))
}
