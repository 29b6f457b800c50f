package main

// #include "goapi.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider"
)

// translate makes addresses of device memory, which descriptors distinguish from other memory, those by which Go knows
// it: of a vector with as many descriptors, if not NULL.
func translate(d *provider.Domain, iov []fi.IOVec, descs *unsafe.Pointer) error {
	err := d.Translate(iov, view[uint64](unsafe.Pointer(descs), C.size_t(len(iov))))
	if err != nil {
		log.Warnf(log.EPData, "transfer: %v", err)
	}
	return err
}
