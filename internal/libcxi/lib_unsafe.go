package libcxi

// #cgo CFLAGS: -O2 -std=gnu11 -Wall -Wextra -D_GNU_SOURCE
// #include <stdlib.h>
// #include "cxi.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/shlib"
)

// ErrAbsent: libcxi or one of its functions is not installed.
var ErrAbsent = errors.New("libcxi is not installed")

// DefaultLibrary is the library's name for the loader.
const DefaultLibrary = "libcxi.so.1"

var library = shlib.New(ErrAbsent, unsafe.Pointer(&C.weft_cxi_symbols), int(C.weft_cxi_symbol_count))

// Load loads the library called name, unless one was loaded before. Errors: ErrAbsent.
func Load(name string) error { return library.Load(name, nil) }

// check turns what a function returned, 0 or a negative errno value, into an error.
func check(step string, rc C.int) error {
	if rc == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", step, unix.Errno(max(rc, -rc)))
}

// DeviceInfo describes a NIC.
type DeviceInfo struct {
	ID       uint32
	Name     string // cxi0
	NID      uint32 // its address in the fabric, 20 bits
	PIDBits  uint32
	PIDCount uint32
	Platform uint32   // wire.PlatformAsic, …
	Function struct { // its PCI address
		Domain                uint16
		Bus, Device, Function uint8
	}
	Revision uint32 // of the device
	Vendor   uint32
	Device   uint32
	PtlTEs   int
	EQs      int
	LEs      int    // list entries
	LinkMbps uint64 // speed of the link
	LinkUp   bool   // as the library says; the network interface's state counts
	MTU      uint64
	FRU      string // the board
	VF       bool
	Version  uint32 // of the chip: its generation above the lower four bits
}

// PCI is the address of the function: 0000:c1:00.0.
func (d *DeviceInfo) PCI() string {
	f := &d.Function
	return fmt.Sprintf("%04x:%02x:%02x.%x", f.Domain, f.Bus, f.Device, f.Function)
}

// Devices lists the NICs of this host, none where there are none.
func Devices() ([]DeviceInfo, error) {
	var list *C.struct_weft_cxi_device_list
	if err := check("list devices", C.weft_cxi_get_device_list(&list)); err != nil {
		return nil, err
	}
	defer C.weft_cxi_free_device_list(list)
	var all []DeviceInfo
	for n := range uint32(list.count) {
		d := C.weft_cxi_device_at(list, C.uint32_t(n))
		i := DeviceInfo{
			ID: uint32(d.dev_id), Name: C.GoString(&d.name[0]), NID: uint32(d.nid),
			PIDBits: uint32(d.pid_bits), Version: uint32(d.version),
			PIDCount: uint32(d.pid_count), Platform: uint32(d.platform),
			Vendor: uint32(d.vendor_id), Device: uint32(d.device_id), PtlTEs: int(d.ptes), EQs: int(d.eqs),
			LEs:      int(d.les),
			LinkMbps: uint64(d.link_speed), LinkUp: d.link_state != 0, MTU: uint64(d.link_mtu),
			FRU: fixed(d.fru[:]), VF: d.is_vf != 0, Revision: uint32(d.device_rev),
		}
		i.Function.Domain, i.Function.Bus = uint16(d.pci_domain), uint8(d.pci_bus)
		i.Function.Device, i.Function.Function = uint8(d.pci_device), uint8(d.pci_function)
		all = append(all, i)
	}
	return all, nil
}

// fixed is the text in an array that need not end in a zero.
func fixed(b []C.char) string {
	var text []byte
	for _, c := range b {
		if c == 0 {
			break
		}
		text = append(text, byte(c))
	}
	return string(text)
}

// Device is an open NIC.
type Device struct{ p unsafe.Pointer }

// Open opens a NIC by its number. Errors: ENOENT; EACCES or EPERM without
// permission for its file.
func Open(id uint32) (*Device, error) {
	d := new(Device)
	if err := check(fmt.Sprintf("open device %d", id), C.weft_cxi_open_device(C.uint32_t(id), &d.p)); err != nil {
		return nil, err
	}
	return d, nil
}

// Close closes the NIC.
func (d *Device) Close() { C.weft_cxi_close_device(d.p) }

// MemberKind says what the number of a service's member is.
type MemberKind uint32

// Kinds of members.
const (
	MemberNone MemberKind = iota
	MemberUID
	MemberGID
	MemberNetNS
)

// Member is a user, group or namespace that may use a service.
type Member struct {
	Kind MemberKind
	ID   uint32
}

// Service is what a system administrator lets some processes use of a NIC.
type Service struct {
	ID         uint32
	Enabled    bool
	System     bool     // not for applications
	Restricted bool     // Members alone may use it
	Members    []Member // set ones
	// VNIs are the allowed ones if FixedVNIs, else there is a range.
	FixedVNIs bool
	VNIs      []uint16
	FixedTCs  bool // only TCs may be used
	TCs       [5]bool
}

func service(s *C.struct_weft_cxi_svc) Service {
	v := Service{
		ID: uint32(s.id), Enabled: s.flags&C.WEFT_CXI_SVC_ENABLED != 0, System: s.flags&C.WEFT_CXI_SVC_SYSTEM != 0,
		Restricted: s.flags&C.WEFT_CXI_SVC_MEMBERS != 0, FixedVNIs: s.flags&C.WEFT_CXI_SVC_VNIS != 0,
		FixedTCs: s.flags&C.WEFT_CXI_SVC_TCS != 0,
	}
	for _, m := range s.members {
		if k := MemberKind(m._type); k != MemberNone {
			v.Members = append(v.Members, Member{k, uint32(m.id)})
		}
	}
	for n := range min(int(s.vni_count), len(s.vnis)) {
		v.VNIs = append(v.VNIs, uint16(s.vnis[n]))
	}
	for n := range v.TCs {
		v.TCs[n] = s.tcs[n] != 0
	}
	return v
}

// Services lists the services of the NIC.
func (d *Device) Services() ([]Service, error) {
	var list *C.struct_weft_cxi_svc_list
	if err := check("list services", C.weft_cxi_get_svc_list(d.p, &list)); err != nil {
		return nil, err
	}
	defer C.weft_cxi_free_svc_list(list)
	var all []Service
	for n := range uint32(list.count) {
		all = append(all, service(C.weft_cxi_svc_at(list, C.uint32_t(n))))
	}
	return all, nil
}

// Service returns one service. Errors: EINVAL or ENOENT when there is none.
func (d *Device) Service(id uint32) (Service, error) {
	var s C.struct_weft_cxi_svc
	if err := check(fmt.Sprintf("get service %d", id), C.weft_cxi_get_svc(d.p, C.uint32_t(id), &s)); err != nil {
		return Service{}, err
	}
	return service(&s), nil
}

// VNIRange is the range of VNIs of a service that lists none. Errors: ENOSYS where the library does not know.
func (d *Device) VNIRange(id uint32) (low, high uint16, err error) {
	var a, b C.uint16_t
	err = check(fmt.Sprintf("VNIs of service %d", id), C.weft_cxi_svc_get_vni_range(d.p, C.uint32_t(id), &a, &b))
	return uint16(a), uint16(b), err
}

// NetNS is the network namespace, an inode number, whose processes may use a service. Errors: ENOSYS where the
// library does not know.
func (d *Device) NetNS(id uint32) (uint32, error) {
	var ns C.uint32_t
	err := check(fmt.Sprintf("network namespace of service %d", id), C.weft_cxi_svc_get_netns(d.p, C.uint32_t(id), &ns))
	return uint32(ns), err
}
