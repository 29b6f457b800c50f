package info

import (
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/nic"
	"github.com/weft-fabric/weft/provider/names"
)

// badHost numbers the interfaces in the worst order: a VPN and a bridge of containers
// before the network, which has a faster one behind it, and one without a carrier.
func badHost() *Env {
	e := testEnv()
	list := []nic.NIC{
		{Link: nic.Link{Name: "tun0", Kind: "tun", Running: true}},
		{Link: nic.Link{Name: "docker0", Kind: "bridge", Running: true}},
		{Link: nic.Link{Name: "lo", Loopback: true, Up: true, Running: true, Type: 772, MTU: 65536}},
		{Link: nic.Link{Name: "eno1"}, Wired: true, Speed: 1e11},
		{Link: nic.Link{Name: "eth0", Running: true}, Wired: true, Speed: 1e9},
		{Link: nic.Link{Name: "eth1", Running: true, Up: true, MTU: 9000, Type: 1, Address: net.HardwareAddr{2, 0, 0, 0,
			0, 7}},
			Wired: true, Speed: 25e9, Driver: "ice", PCI: &nic.PCI{Bus: 0x3b, Function: 1}, VendorID: "0x8086"},
		{Link: nic.Link{Name: "ib0", Running: true}, RDMA: "mlx5_0"},
	}
	e.Interfaces = func() ([]names.Interface, error) {
		var out []names.Interface
		for i, n := range list {
			p := []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.%d.0.5/16", i))}
			if n.Name == "tun0" || n.Name == "eth1" {
				p = append(p, netip.MustParsePrefix(fmt.Sprintf("2001:db8:%d::5/64", i)))
			}
			out = append(out, names.Interface{Name: n.Name, Index: i + 1, Up: true, Loopback: n.Loopback, Prefixes: p})
		}
		return out, nil
	}
	e.NICs = func() func(string) (nic.NIC, bool) {
		return func(name string) (nic.NIC, bool) {
			for _, n := range list {
				if n.Name == name {
					return n, true
				}
			}
			return nic.NIC{}, false
		}
	}
	return e
}

func TestOrderOfInterfaces(t *testing.T) {
	const all = "ib0 10.6.0.5:0, eth1 10.5.0.5:0, eth1 [2001:db8:5::5]:0, eth0 10.4.0.5:0, docker0 10.1.0.5:0, tun0 " +
		"10.0.0.5:0, tun0 [2001:db8::5]:0, lo 10.2.0.5:0"
	for _, c := range []struct {
		name string
		cfg  func(c *config.Config)
		set  func(h *fi.Info)
		want string
	}{
		{"all", nil, nil, all},
		{"a domain without a carrier", nil, func(h *fi.Info) { h.Domain.Name = "eno1" }, "eno1 10.3.0.5:0"},
		{"FI_WEFT_IFACE without a carrier", func(c *config.Config) { c.Iface = "eno1" }, nil, "eno1 10.3.0.5:0"},
		{"an address without a carrier", nil, func(h *fi.Info) {
			h.SrcAddr = encoded(t, fi.SockaddrIn, "fi_sockaddr_in://10.3.0.5:0")
		}, "eno1 10.3.0.5:0"},
		{"the wildcard", nil, func(h *fi.Info) {
			h.AddrFormat, h.SrcAddr = fi.SockaddrIn, encoded(t, fi.SockaddrIn, "fi_sockaddr_in://0.0.0.0:0")
		}, "ib0 10.6.0.5:0, eth1 10.5.0.5:0, eth0 10.4.0.5:0, docker0 10.1.0.5:0, tun0 10.0.0.5:0, lo 10.2.0.5:0"},
	} {
		cfg := config.Default()
		if c.cfg != nil {
			c.cfg(cfg)
		}
		for range 3 { // it stays
			infos, err := badHost().GetInfo(v117, "", "", 0, newHints(c.set), cfg)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if got := show(t, infos); got != c.want {
				t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
			}
		}
	}
}

// TestRouteGoesFirst asks for a destination behind the VPN.
func TestRouteGoesFirst(t *testing.T) {
	e := badHost()
	e.Route = func(names.Name) (names.Name, error) { return names.New(netip.MustParseAddr("10.0.0.5"), 0), nil }
	infos, err := e.GetInfo(v117, "10.9.0.1", "5", 0, newHints(func(h *fi.Info) { h.AddrFormat = fi.SockaddrIn }), nil)
	if err != nil || infos[0].Domain.Name != "tun0" || infos[1].Domain.Name != "ib0" {
		t.Errorf("%s, %v", show(t, infos), err)
	}
}

func TestNIC(t *testing.T) {
	infos, err := badHost().GetInfo(v117, "", "", 0, newHints(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := infos[0].NIC.Name; got != "mlx5_0" {
		t.Errorf("RDMA device %q", got)
	}
	want := &fi.NIC{Name: "eth1", VendorID: "0x8086", Driver: "ice", PCI: &fi.PCIAttr{Bus: 0x3b, Function: 1},
		Address: "02:00:00:00:00:07",
		MTU:     9000, Speed: 25e9, State: fi.LinkUp, NetworkType: "Ethernet"}
	if !reflect.DeepEqual(infos[1].NIC, want) {
		t.Errorf("got  %+v\nwant %+v", infos[1].NIC, want)
	}
	want = &fi.NIC{Name: "lo", MTU: 65536, State: fi.LinkUp, NetworkType: "loopback"}
	if got := infos[len(infos)-1].NIC; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if n := nicOf("lo"); n == nil || n.Name != "lo" || n.NetworkType != "loopback" || n.State != fi.LinkUp ||
		n.MTU < 16384 {
		t.Errorf("loopback of this host: %+v", n)
	}
	if n := nicOf("none"); n != nil {
		t.Errorf("an interface that is not there: %+v", n)
	}
}
