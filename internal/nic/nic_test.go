package nic

import (
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/nettest"
)

// tree makes a sysfs of files and links, given as "path=content" and "path->target", and
// folders "path/".
func tree(t *testing.T, entries ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, e := range entries {
		path, target, link := strings.Cut(e, "->")
		path, content, _ := strings.Cut(path, "=")
		full := filepath.Join(root, path)
		var err error
		if err = os.MkdirAll(filepath.Dir(full), 0o755); err == nil {
			switch {
			case link:
				err = os.Symlink(filepath.Join(root, target), full)
			case strings.HasSuffix(path, "/"):
				err = os.MkdirAll(full, 0o755)
			default:
				err = os.WriteFile(full, []byte(content+"\n"), 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// iface are the entries that every interface has; its address ends with its index.
func iface(name, index string, more ...string) []string {
	list := []string{"class/net/" + name + "/ifindex=" + index, "class/net/" + name + "/address=02:00:00:00:00:0" +
		index}
	for _, m := range more {
		list = append(list, "class/net/"+name+"/"+m)
	}
	return list
}

func link(name string, index int, kind string) Link {
	return Link{Name: name, Index: index, Kind: kind, Type: 1, Up: true, Running: true, MTU: 1500,
		Address: net.HardwareAddr{2, 0, 0, 0, 0, byte(index)}}
}

// hostTree is a host with an RDMA device, a virtio one, and software on top.
func hostTree(t *testing.T) string {
	return tree(t, slices.Concat(
		[]string{
			"devices/pci0000:3a/0000:3b:00.1/vendor=0x15b3", "devices/pci0000:3a/0000:3b:00.1/device=0x1017",
			"devices/pci0000:3a/0000:3b:00.1/revision=0x00",
			"devices/pci0000:3a/0000:3b:00.1/driver->bus/pci/drivers/mlx5_core", "bus/pci/drivers/mlx5_core/",
			"devices/pci10000:00/10000:00:03.0/vendor=0x1af4", "devices/pci10000:00/10000:00:03.0/device=0x1041",
			"devices/pci10000:00/10000:00:03.0/virtio2/vendor=0x0001",
			"devices/pci10000:00/10000:00:03.0/virtio2/driver->bus/virtio/drivers/virtio_net",
			"bus/virtio/drivers/virtio_net/",
			"class/infiniband/mlx5_1/fw_ver=16.35.2000", "class/infiniband/mlx5_1/ports/1/rate=100 Gb/sec (4X EDR)",
			"class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0=ib0f1",
			"class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/1=other",
		},
		iface("ib0f1", "2", "speed=25000", "device->devices/pci0000:3a/0000:3b:00.1"),
		iface("eth0", "3", "speed=-1", "device->devices/pci10000:00/10000:00:03.0/virtio2"),
		iface("br0", "4", "lower_eth0/"), iface("docker0", "5", "brif/veth1/"), iface("veth1", "6"),
		iface("wlan0", "7", "phy80211/", "device->devices/pci0000:3a/0000:3b:00.1"),
		iface("bond0", "8", "speed=20000", "lower_eth0/"), iface("tun0", "9"), []string{
			"devices/ffff:01:1f.7/vendor=0x8086",
			"class/net/vf0/ifindex=10", "class/net/vf0/address=02:00:00:00:00:0a",
			"class/net/vf0/device->devices/ffff:01:1f.7",
		},
	)...)
}

func TestDescribe(t *testing.T) {
	root := hostTree(t)
	n, ok := Describe(root, link("ib0f1", 2, ""))
	want := NIC{Link: link("ib0f1", 2, ""), RDMA: "mlx5_1", PCI: &PCI{0, 0x3b, 0, 1}, VendorID: "0x15b3",
		DeviceID: "0x1017",
		Revision: "0x00", Driver: "mlx5_core", Firmware: "16.35.2000", Speed: 100e9, Wired: true}
	if !ok || !reflect.DeepEqual(n, want) {
		t.Errorf("got  %+v\nwant %+v", n, want)
	}
	n, ok = Describe(root, link("eth0", 3, ""))
	want = NIC{Link: link("eth0", 3, ""), VendorID: "0x1af4", DeviceID: "0x1041", Driver: "virtio_net", Wired: true}
	if !ok || !reflect.DeepEqual(n, want) {
		t.Errorf("got  %+v %+v\nwant %+v", n, n.PCI, want)
	}
	if n, _ := Describe(root, link("vf0", 10, "")); n.PCI == nil || *n.PCI != (PCI{0xffff, 1, 0x1f, 7}) {
		t.Errorf("PCI address %+v", n.PCI)
	}
	if n, ok := Describe(root, link("veth1", 6, "veth")); !ok || n.PCI != nil || n.Driver != "" || n.Wired {
		t.Errorf("veth: %+v, %v", n, ok)
	}
}

// TestOtherNamespace gives interfaces that are in sysfs under the same name only.
func TestOtherNamespace(t *testing.T) {
	root := hostTree(t)
	other := link("eth0", 3, "veth")
	other.Address = net.HardwareAddr{2, 0, 0, 0, 0, 99}
	for _, l := range []Link{other, link("eth0", 99, "veth"), link("none", 3, "veth")} {
		if n, ok := Describe(root, l); ok || n.Wired || n.PCI != nil || n.Rank() != Virtual {
			t.Errorf("%s, index %d: %+v, %v", l.Name, l.Index, n, ok)
		}
	}
}

func TestOrder(t *testing.T) {
	root := hostTree(t)
	lo := link("lo", 1, "")
	lo.Loopback = true
	ppp := link("ppp0", 10, "")
	ppp.Type = 512
	var list []*NIC
	for _, l := range []Link{lo, link("tun0", 9, "tun"), ppp, link("docker0", 5, "bridge"), link("veth1", 6, "veth"),
		link("wlan0", 7, ""),
		link("br0", 4, "bridge"), link("eth0", 3, ""), link("bond0", 8, "bond"), link("ib0f1", 2, ""),
		link("wg0", 11, "wireguard")} {
		n, _ := Describe(root, l)
		list = append(list, &n)
	}
	slices.SortFunc(list, Compare)
	var got []string
	for _, n := range list {
		got = append(got, n.Name+": "+n.Reason())
	}
	want := []string{
		"ib0f1: RDMA device mlx5_1, 100 Gb/s", "bond0: bond over wired, 20 Gb/s", "eth0: wired",
		"br0: bridge with a wired port", "wlan0: wireless",
		"veth1: virtual (veth)", "docker0: bridge without a wired port", "tun0: tunnel or VPN (tun)",
		"ppp0: tunnel or VPN",
		"wg0: tunnel or VPN (wireguard)", "lo: loopback: this host only",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestLinks compares what netlink says with the standard library.
func TestLinks(t *testing.T) {
	links, err := Links()
	if err != nil {
		t.Fatal(err)
	}
	list, err := net.Interfaces()
	if err != nil || len(list) != len(links) {
		t.Fatalf("%d links, %d interfaces, %v", len(links), len(list), err)
	}
	for _, i := range list {
		l := links[i.Name]
		if l.Index != i.Index || l.MTU != i.MTU || l.Up != (i.Flags&net.FlagUp != 0) ||
			l.Running != (i.Flags&net.FlagRunning != 0) ||
			l.Loopback != (i.Flags&net.FlagLoopback != 0) ||
			(!l.Loopback && l.Address.String() != i.HardwareAddr.String()) {
			t.Errorf("%+v, want %+v", l, i)
		}
	}
	n, ok := Describe(Sysfs, links["lo"])
	if !ok || n.Network() != "loopback" || n.Rank() != Loopback || n.Address.String() != "00:00:00:00:00:00" {
		t.Errorf("lo: %+v, %v", n, ok)
	}
}

// A link that has its carrier is used at once: the state that the kernel says beside it follows later.
func TestRunningWithCarrier(t *testing.T) {
	a, b := nettest.New(t)
	for range 30 {
		b.Run("ip", "link", "set", b.Iface, "down")
		down := linkOn(t, a)
		b.Run("ip", "link", "set", b.Iface, "up")
		if up := linkOn(t, a); down.Running || !up.Running {
			t.Fatalf("running: %v without a carrier, %v with one", down.Running, up.Running)
		}
	}
	// Whatever switches the port on has yet to say that it may be used.
	a.Run("ip", "link", "set", a.Iface, "down")
	a.Run("ip", "link", "set", a.Iface, "mode", "dormant", "up")
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if !linkOn(t, a).Running {
			return
		}
	}
	t.Error("a dormant link is running")
}

// linkOn is a host's end of its cable.
func linkOn(t *testing.T, h *nettest.Host) (l Link) {
	h.Do(func() {
		links, err := Links()
		if err != nil {
			t.Error(err)
		}
		l = links[h.Iface]
	})
	return l
}
