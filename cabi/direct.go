//go:build direct

package main

// #include <stdlib.h>
// #include "direct.h"
import "C"

import (
	"slices"
	"strings"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
)

// libweft.so as its own host: what a libfabric does around a provider's fi_getinfo and fi_fabric.

// isReported reports whether a name is weft's, or that of FI_WEFT_NAME.
func isReported(name string) bool {
	return strings.EqualFold(name, C.WEFT_NAME) || strings.EqualFold(name, declareOwn())
}

// admitted reports whether a provider's name as hints take it admits weft: its own name or that which it reports, or a
// list behind "^" that does not have it.
func admitted(name string) bool {
	not, excludes := strings.CutPrefix(name, "^")
	switch {
	case name == "":
		return true
	case excludes:
		return !listed(not, C.WEFT_NAME)
	}
	return isReported(name)
}

// 0 if the name is weft's, or that which it reports.
//
//export weftGoDirectNamed
func weftGoDirectNamed(name *C.char) (rc C.int) {
	defer guard("fi_fabric", &rc)
	if !isReported(text(name)) {
		return result(fi.ENODEV)
	}
	return 0
}

// Hints have the members of all versions.
//
//export weftGoDirectGetInfo
func weftGoDirectGetInfo(version C.uint32_t, node, service *C.char, flags C.uint64_t, hints *C.struct_fi_info,
	out **C.struct_fi_info) (rc C.int) {
	defer guard("fi_getinfo", &rc)
	if out == nil {
		return result(fi.EINVAL)
	}
	*out = nil
	host, name := &C.weft_direct_host, declareOwn()
	if rc := C.weft_attach(host); rc != 0 {
		return rc
	}
	if version > C.WEFT_API {
		log.Warnf(log.Core, "the program asks for version %d.%d, this is %d.%d",
			fi.Major(uint32(version)), fi.Minor(uint32(version)), fi.Major(C.WEFT_API), fi.Minor(C.WEFT_API))
		return result(fi.ENOSYS)
	}
	h := infoFromC(hints, uint32(version))
	if h != nil && h.Fabric != nil {
		if !admitted(h.Fabric.ProvName) {
			return result(fi.ENODATA)
		}
		h.Fabric.ProvName = "" // it has been judged
	}
	list, err := offers(host, version, node, service, flags, h)
	if err != nil {
		return result(err)
	}
	if list = ofFormat(list); len(list) == 0 {
		return result(fi.ENODATA)
	}
	return result(infosToC(host, list, out, func(c *C.struct_fi_info) {
		c.fabric_attr.api_version, c.fabric_attr.prov_version = version, host.provider.version
		c.fabric_attr.prov_name = C.CString(name)
	}))
}

// ofFormat leaves of the offers those with the address format that FI_ADDR_FORMAT names, all if it names none.
func ofFormat(list []*fi.Info) []*fi.Info {
	wanted := C.getenv(formatVariable)
	if wanted == nil {
		return list
	}
	for format, name := range shownEnums[C.FI_TYPE_ADDR_FORMAT].names {
		if format != C.FI_FORMAT_UNSPEC && strings.EqualFold(name, C.GoString(wanted)) {
			return slices.DeleteFunc(list, func(i *fi.Info) bool { return i.AddrFormat != fi.AddrFormat(format) })
		}
	}
	log.Warnf(log.Core, "FI_ADDR_FORMAT=%s: there is no such address format", C.GoString(wanted))
	return list
}

var formatVariable = C.CString("FI_ADDR_FORMAT")
