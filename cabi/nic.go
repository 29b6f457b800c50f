package main

// #include "goapi.h"
// static inline struct fi_pci_attr pci_of(const struct fid_nic *nic) { return nic->bus_attr->attr.pci; }
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// The text of a NIC as fi_tostr has it, cut to size - 1 bytes and terminated.
//
//export weftGoNICText
func weftGoNICText(nic *C.struct_fid_nic, buf *C.char, size C.size_t) {
	defer guardVoid("fi_tostr")
	if size == 0 {
		return
	}
	var b strings.Builder
	shown := func(s *C.char) string {
		if s == nil {
			return "(null)"
		}
		return C.GoString(s)
	}
	d, l := nic.device_attr, nic.link_attr
	fmt.Fprintf(&b, "    nic:\n        fi_device_attr:\n            name: %s\n            device_id: %s\n"+
		"            device_version: %s\n            vendor_id: %s\n            driver: %s\n            firmware: %s\n",
		shown(d.name), shown(d.device_id), shown(d.device_version), shown(d.vendor_id), shown(d.driver),
		shown(d.firmware))
	if nic.bus_attr.bus_type == C.FI_BUS_PCI {
		p := C.pci_of(nic)
		fmt.Fprintf(&b, "        fi_bus_attr:\n            bus_type: FI_BUS_PCI\n            fi_pci_attr:\n"+
			"                domain_id: %d\n                bus_id: %d\n                device_id: %d\n"+
			"                function_id: %d\n", p.domain_id, p.bus_id, p.device_id, p.function_id)
	} else {
		b.WriteString("        fi_bus_attr:\n            bus_type: FI_BUS_UNKNOWN\n")
	}
	state, ok := map[C.enum_fi_link_state]string{
		C.FI_LINK_UNKNOWN: "FI_LINK_UNKNOWN", C.FI_LINK_DOWN: "FI_LINK_DOWN", C.FI_LINK_UP: "FI_LINK_UP",
	}[l.state]
	if !ok {
		state = "Unknown"
	}
	fmt.Fprintf(&b, "        fi_link_attr:\n            address: %s\n            mtu: %d\n            speed: %d\n"+
		"            state: %s\n            network_type: %s\n", shown(l.address), l.mtu, l.speed, state,
		shown(l.network_type))
	out := view[byte](unsafe.Pointer(buf), min(size, 1<<20))
	out[copy(out[:len(out)-1], b.String())] = 0
}
