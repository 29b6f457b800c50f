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
	err := o.Domain().Translate(view[fi.IOVec](unsafe.Pointer(iov), count), view[uint64](unsafe.Pointer(descs), count))
	if err != nil {
		log.Warnf(log.EPData, "transfer: %v", err)
	}
	return result(err)
}
