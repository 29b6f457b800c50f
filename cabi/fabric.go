package main

// #include "goapi.h"
import "C"

import (
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/provider"
)

// fids finds the C object of an open fabric or domain, which fi_getinfo names
// in its answers.
var fids struct {
	sync.Mutex // control operations only
	byObject   map[any]unsafe.Pointer
}

// setFID remembers the C object of object, nil to forget it.
func setFID(object any, c unsafe.Pointer) {
	fids.Lock()
	defer fids.Unlock()
	if c == nil {
		delete(fids.byObject, object)
		return
	}
	if fids.byObject == nil {
		fids.byObject = map[any]unsafe.Pointer{}
	}
	fids.byObject[object] = c
}

// fidOf returns the C object of an open fabric or domain, or of a foreign
// object that the application named; NULL for others.
func fidOf(object any) unsafe.Pointer {
	if f, ok := object.(foreign); ok {
		return f.fid
	}
	fids.Lock()
	defer fids.Unlock()
	return fids.byObject[object]
}

// self is the C object, which fi_getinfo names in its answers.
//
//export weftGoFabricOpen
func weftGoFabricOpen(attr *C.struct_fi_fabric_attr, self unsafe.Pointer, out *C.struct_weft_opened) (rc C.int) {
	defer guard("fi_fabric", &rc)
	refreshLog()
	choosePlane()
	f, err := provider.OpenFabric(fabricFromC(attr))
	if err != nil {
		return result(err)
	}
	if out.handle, err = enter(f); err != nil {
		return result(err)
	}
	setFID(f, self)
	return 0
}

// self as in weftGoFabricOpen.
//
//export weftGoDomainOpen
func weftGoDomainOpen(
	fabric C.uint64_t, info *C.struct_fi_info, self unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_domain", &rc)
	f, err := objectOf[*provider.Fabric](fabric)
	if err != nil {
		return result(err)
	}
	d, err := f.OpenDomain(infoOf(info))
	if err != nil {
		return result(err)
	}
	if out.handle, err = enter(d); err != nil {
		return result(err)
	}
	(*C.struct_weft_domain_obj)(self).fabric = (*C.struct_weft_fabric_obj)(fidOf(f))
	setFID(d, self)
	return 0
}

//export weftGoDomainBind
func weftGoDomainBind(domain, queue C.uint64_t, flags C.uint64_t) (rc C.int) {
	defer guard("fi_domain_bind", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	q, err := objectOf[*eq.Queue](queue)
	if err != nil {
		return result(err)
	}
	return result(d.BindEQ(q, uint64(flags)))
}
