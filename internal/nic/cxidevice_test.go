package nic

import (
	"path/filepath"
	"reflect"
	"testing"
)

// cxiTree is a made-up host with two NICs, of which one stands under a network interface.
func cxiTree(t *testing.T) Host {
	t.Helper()
	root := tree(t,
		"class/cxi/cxi0/device/numa_node=3", "class/cxi/cxi0/device/properties/nid=0x1a",
		"class/cxi/cxi0/device/properties/cassini_version=2.0",
		"class/cxi/cxi0/device/properties/num_les=16384", "class/cxi/cxi0/device/properties/num_eqs=2047",
		"class/cxi/cxi0/device/properties/link=1", "class/cxi/cxi0/device/properties/speed=200000",
		"class/cxi/cxi0/device/properties/hpc_mtu=2048",
		"class/cxi/cxi0/device/telemetry/pct_spt_timeouts=17@1700000000.000000001",
		"class/cxi/cxi0/device/telemetry/hni_rx_paused_0=none",
		"class/cxi/cxi1/device->pci/0000:c1:00.0", "pci/0000:c1:00.0/properties/nid=b",
		"class/net/hsn1/device->pci/0000:c1:00.0", "class/net/hsn1/operstate=up", "class/net/hsn1/speed=400000",
		"dev/cxi0=", "lib/libcxi.so.1=")
	return Host{Sys: root, Dev: filepath.Join(root, "dev"), Dirs: []string{filepath.Join(root, "lib")}}
}

// TestCXIDevices: what is shown of NICs, and the service and VNI that the launcher gives.
func TestCXIDevices(t *testing.T) {
	h := cxiTree(t)
	env := map[string]string{"SLINGSHOT_VNIS": "1234,5", "SLINGSHOT_DEVICES": "cxi7,cxi0", "SLINGSHOT_SVC_IDS": "3,9"}
	list := h.CXIDevices(func(n string) string { return env[n] })
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	want := CXIDevice{
		Name: "cxi0", NID: 26, Link: "up", Mbps: 200000, MTU: 2048, NUMANode: 3, Generation: 2,
		Limits:  []CXILimit{{"event queues", 2047}, {"list entries", 16384}},
		Service: 9, VNI: 1234, Why: "SLINGSHOT_SVC_IDS and SLINGSHOT_VNIS, set by the job's launcher",
	}
	if !reflect.DeepEqual(list[0], want) {
		t.Errorf("%+v, want %+v", list[0], want)
	}
	if d := list[1]; d.Name != "cxi1" || d.NID != 11 || d.Netdev != "hsn1" || d.Link != "up" || d.Mbps != 400000 ||
		d.NUMANode != -1 || d.Service != 0 || d.Problem == "" {
		t.Errorf("%+v", d)
	}
	if d := h.CXIDevices(func(string) string { return "" })[0]; d.Service != 0 || d.VNI != 0 || d.Why == "" ||
		d.Problem != "" {
		t.Errorf("%+v", d)
	}
	if got := h.Telemetry("cxi0"); !reflect.DeepEqual(got, map[string]uint64{"pct_spt_timeouts": 17}) {
		t.Errorf("%v", got)
	}
}

// TestLaunched: variables that a launcher has set wrongly.
func TestLaunched(t *testing.T) {
	for _, c := range []struct {
		vnis, devices, services string
		ok, bad                 bool
	}{
		{"1", "cxi0", "2", true, false},
		{" 1 ,x", "cxi0", " 2", true, false},
		{"1", "cxi1", "2", false, false},
		{"", "cxi0", "2", false, false},
		{"0", "cxi0", "2", false, true},
		{"65536", "cxi0", "2", false, true},
		{"1", "cxi1,cxi0", "2", false, true},
		{"1", "cxi0", "x", false, true},
	} {
		env := map[string]string{"SLINGSHOT_VNIS": c.vnis, "SLINGSHOT_DEVICES": c.devices,
			"SLINGSHOT_SVC_IDS": c.services}
		service, vni, ok, err := Launched("cxi0", func(n string) string { return env[n] })
		if ok != c.ok || (err != nil) != c.bad || ok && (service != 2 || vni != 1) {
			t.Errorf("%+v: service %d, VNI %d, %v, %v", c, service, vni, ok, err)
		}
	}
}
