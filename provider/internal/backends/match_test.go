package backends

import (
	"reflect"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw/cxi"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// TestMatchNIC: what fi_getinfo says of a NIC, its PCI address among it, is what libcxi says of it.
func TestMatchNIC(t *testing.T) {
	d := cxi.Device{DeviceInfo: libcxi.DeviceInfo{Name: "cxi3", NID: 0x12345, Vendor: 0x17db, Device: 0x371,
		Revision: 2, LinkMbps: 200000, MTU: 2048}}
	d.Function.Domain, d.Function.Bus, d.Function.Device, d.Function.Function = 0xfffe, 0xc1, 0x1f, 7
	want := &fi.NIC{Name: "cxi3", VendorID: "0x17db", DeviceID: "0x371", DeviceVersion: "2", Driver: "cxi_ss1",
		PCI:     &fi.PCIAttr{Domain: 0xfffe, Bus: 0xc1, Device: 0x1f, Function: 7},
		Address: "0x12345", MTU: 2048, Speed: 200e9, State: fi.LinkUp, NetworkType: "HPC Ethernet"}
	if n := matchNIC(&d); !reflect.DeepEqual(n, want) {
		t.Errorf("got  %+v %+v\nwant %+v %+v", n, n.PCI, want, want.PCI)
	}
}
