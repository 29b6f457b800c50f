package main

// #include "goapi.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider"
)

// Makes addresses of device memory, which descriptors tell from other memory, those by which Go knows it.
//
//export weftGoTranslate
func weftGoTranslate(object C.uint64_t, iov *C.struct_iovec, descs *unsafe.Pointer, count C.size_t) (rc C.int) {
	defer guard("device memory of a transfer", &rc)
	o, ok := handles.get(uint64(object)).(interface{ Domain() *provider.Domain })
	if !ok {
		return result(fi.EINVAL)
	}
	return result(translate(o.Domain(), view[fi.IOVec](unsafe.Pointer(iov), count), descs))
}

// translate is that for a vector with as many descriptors, if not NULL.
func translate(d *provider.Domain, iov []fi.IOVec, descs *unsafe.Pointer) error {
	err := d.Translate(iov, view[uint64](unsafe.Pointer(descs), C.size_t(len(iov))))
	if err != nil {
		log.Warnf(log.EPData, "transfer: %v", err)
	}
	return err
}
