package cxi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// services is a serviceSource of a test.
type services struct {
	list  []libcxi.Service
	netns map[uint32]uint32
	vnis  map[uint32][2]uint16
}

func (s services) Services() ([]libcxi.Service, error) { return s.list, nil }

func (s services) Service(id uint32) (libcxi.Service, error) {
	for _, v := range s.list {
		if v.ID == id {
			return v, nil
		}
	}
	return libcxi.Service{}, unix.EINVAL
}

func (s services) VNIRange(id uint32) (low, high uint16, err error) {
	if r, ok := s.vnis[id]; ok {
		return r[0], r[1], nil
	}
	return 0, 0, unix.ENOSYS
}

func (s services) NetNS(id uint32) (uint32, error) {
	if n, ok := s.netns[id]; ok {
		return n, nil
	}
	return 0, unix.ENOSYS
}

func env(list ...string) func(string) string {
	return func(name string) string {
		for _, v := range list {
			if n, text, _ := strings.Cut(v, "="); n == name {
				return text
			}
		}
		return ""
	}
}

// TestChooseService: the launcher's word first, then network namespace, user, group, everybody.
func TestChooseService(t *testing.T) {
	member := func(id uint32, k libcxi.MemberKind, who uint32, vnis ...uint16) libcxi.Service {
		return libcxi.Service{ID: id, Enabled: true, Restricted: true, Members: []libcxi.Member{{Kind: k, ID: who}},
			FixedVNIs: len(vnis) > 0, VNIs: vnis}
	}
	open := libcxi.Service{ID: 1, Enabled: true, FixedVNIs: true, VNIs: []uint16{1, 10}}
	user, group := member(5, libcxi.MemberUID, 1000, 55), member(6, libcxi.MemberGID, 100, 66)
	space := member(7, libcxi.MemberNetNS, 0)
	off, system := open, open
	off.ID, off.Enabled, system.ID, system.System = 8, false, 9, true
	who := identity{uid: 1000, gid: 100, netns: 4026531840}
	all := services{list: []libcxi.Service{open, user, group, space, off, system},
		netns: map[uint32]uint32{7: 4026531840}, vnis: map[uint32][2]uint16{7: {70, 79}}}
	without := func(ids ...uint32) services {
		s := services{netns: all.netns, vnis: all.vnis}
		for _, v := range all.list {
			keep := true
			for _, id := range ids {
				keep = keep && v.ID != id
			}
			if keep {
				s.list = append(s.list, v)
			}
		}
		return s
	}
	launcher := []string{"SLINGSHOT_VNIS=66,67", "SLINGSHOT_DEVICES=cxi1,cxi0", "SLINGSHOT_SVC_IDS=5,6"}
	with := func(n int, v string) func(string) string {
		l := append([]string(nil), launcher...)
		l[n] = v
		return env(l...)
	}
	for _, c := range []struct {
		name    string
		source  services
		env     func(string) string
		service uint32
		vni     uint16
		err     error
	}{
		{"network namespace", all, env(), 7, 70, nil},
		{"user", without(7), env(), 5, 55, nil},
		{"group", without(7, 5), env(), 6, 66, nil},
		{"everybody", without(7, 6, 5), env(), 1, 1, nil},
		{"none", without(7, 6, 5, 1), env(), 0, 0, hw.ErrPermission},
		{"the launcher", all, env(launcher...), 6, 66, nil},
		{"the launcher does not know the device", all, with(1, "SLINGSHOT_DEVICES=cxi4"), 7, 70, nil},
		{"the launcher says half", all, with(0, ""), 7, 70, nil},
		{"too few services", all, with(2, "SLINGSHOT_SVC_IDS=5"), 0, 0, hw.ErrInvalid},
		{"no service", all, with(2, "SLINGSHOT_SVC_IDS=5,x"), 0, 0, hw.ErrInvalid},
		{"an unknown service", all, with(2, "SLINGSHOT_SVC_IDS=5,44"), 0, 0, hw.ErrPermission},
		{"no VNI", all, with(0, "SLINGSHOT_VNIS=x"), 0, 0, hw.ErrInvalid},
		{"VNI 0", all, with(0, "SLINGSHOT_VNIS=0"), 0, 0, hw.ErrInvalid},
		{"a VNI that the service does not have", all, with(0, "SLINGSHOT_VNIS=67"), 0, 0, hw.ErrPermission},
		{"a VNI in the range", all, env("SLINGSHOT_VNIS=75", "SLINGSHOT_DEVICES=cxi0", "SLINGSHOT_SVC_IDS=7"), 7, 75,
			nil},
		{"a VNI out of the range", all, env("SLINGSHOT_VNIS=80", "SLINGSHOT_DEVICES=cxi0", "SLINGSHOT_SVC_IDS=7"), 0, 0,
			hw.ErrPermission},
		{"any VNI", services{list: []libcxi.Service{member(5, libcxi.MemberUID, 1000)}}, env(), 5, defaultVNI, nil},
	} {
		id, vni, err := chooseService(c.source, "cxi0", who, c.env)
		if !errors.Is(err, c.err) || err == nil && (id != c.service || vni != c.vni) {
			t.Errorf("%s: service %d, VNI %d, %v; want %d, %d, %v", c.name, id, vni, err, c.service, c.vni, c.err)
		}
	}
}

// sysfs makes a tree with the network interface of a NIC.
func sysfs(t *testing.T, pci string, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	device := filepath.Join(root, "devices", pci)
	netdev := filepath.Join(root, "class/net/hsn0")
	for _, err := range []error{os.MkdirAll(device, 0o755), os.MkdirAll(netdev, 0o755),
		os.Symlink("../../../devices/"+pci, filepath.Join(netdev, "device"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(netdev, name), []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestDescribe: the network interface that stands on a NIC says whether its link is up.
func TestDescribe(t *testing.T) {
	info := libcxi.DeviceInfo{Name: "cxi0", LinkMbps: 200000}
	info.Function.Bus = 0xc1
	for _, c := range []struct {
		name  string
		files map[string]string
		up    bool
		mbps  uint64
	}{
		{"up", map[string]string{"operstate": "up", "speed": "400000"}, true, 400000},
		{"down", map[string]string{"operstate": "down", "carrier": "1", "speed": "-1"}, false, 200000},
		{"unknown with a carrier", map[string]string{"operstate": "unknown", "carrier": "1"}, true, 200000},
		{"unknown without", map[string]string{"operstate": "unknown", "carrier": "0"}, false, 200000},
		{"numa", map[string]string{"operstate": "up", "device/numa_node": "3"}, true, 200000},
	} {
		d := describe(sysfs(t, info.PCI(), c.files), info)
		node := -1
		if c.name == "numa" {
			node = 3
		}
		if d.Netdev != "hsn0" || d.Up != c.up || d.LinkMbps != c.mbps || d.NUMANode != node {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
	for _, linkUp := range []bool{false, true} {
		info.LinkUp = linkUp
		if d := describe(sysfs(t, "0000:c2:00.0", nil), info); d.Netdev != "" || d.Up != linkUp {
			t.Errorf("without a network interface: %+v", d)
		}
	}
	if Present(t.TempDir()) {
		t.Error("a NIC in an empty folder")
	}
}

func TestChooseDevice(t *testing.T) {
	list := []Device{{DeviceInfo: libcxi.DeviceInfo{Name: "cxi0"}},
		{DeviceInfo: libcxi.DeviceInfo{Name: "cxi1"}, Up: true}}
	for want, name := range map[string]string{"cxi1": "", "cxi0": "cxi0"} {
		if d, err := choose(list, name); err != nil || d.Name != want {
			t.Errorf("%q: %s, %v", name, d.Name, err)
		}
	}
	if d, err := choose(list[:1], ""); err != nil || d.Name != "cxi0" {
		t.Errorf("without a link: %s, %v", d.Name, err)
	}
	if _, err := choose(list, "cxi7"); !errors.Is(err, hw.ErrUnreachable) || !errors.Is(err, unix.ENODEV) {
		t.Errorf("cxi7: %v", err)
	}
}

// TestAbsent: without libcxi the error says so.
func TestAbsent(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		out, err := child(t, "TestAbsent$", "").CombinedOutput() // where no other test has loaded the library
		if err != nil || !strings.Contains(string(out), "--- PASS: TestAbsent") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	_, err := OpenDomain(DomainConfig{Library: "libnothing-of-this-name.so.1"})
	if !errors.Is(err, libcxi.ErrAbsent) || !errors.Is(err, hw.ErrUnreachable) {
		t.Errorf("without libcxi: %v", err)
	}
}

func TestOpenError(t *testing.T) {
	for kind, err := range map[error]error{hw.ErrPermission: unix.EACCES, hw.ErrUnreachable: unix.ENOENT} {
		if got := openError(err, "cxi0"); !errors.Is(got, kind) || !strings.Contains(got.Error(), "/dev/cxi0") {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestAddress(t *testing.T) {
	a := address{nid: 0x12345, pid: 300, pidBits: 9, vni: 10, longest: 8384, nonce: 0x1122334455667788}
	b := a.appendTo(nil)
	if got, err := parseAddress(b); err != nil || got != a || len(b) != addressBytes {
		t.Errorf("%+v, %v", got, err)
	}
	if a.matchHigh() != 0x1122334400000000 || a.id() != 300<<23|0x12345 {
		t.Errorf("%#x, %#x", a.matchHigh(), a.id())
	}
	bad := map[string]address{
		"PID bits": {nid: 1, pid: 1, pidBits: 10, longest: 512, nonce: 1},
		"PID":      {nid: 1, pid: 64, pidBits: 6, longest: 512, nonce: 1},
		"NIC":      {nid: 1 << 20, pid: 1, pidBits: 9, longest: 512, nonce: 1},
		"number":   {nid: 1, pid: 1, pidBits: 9, longest: 512},
		"length":   {nid: 1, pid: 1, pidBits: 9, nonce: 1},
	}
	for name, a := range bad {
		if _, err := parseAddress(a.appendTo(nil)); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("wrong %s: %v", name, err)
		}
	}
	for _, version := range []byte{0, addressVersion - 1, addressVersion + 1} {
		other := slices.Clone(b)
		other[0] = version
		if _, err := parseAddress(other); !errors.Is(err, hw.ErrInvalid) ||
			!strings.Contains(err.Error(), fmt.Sprintf("version %d, not %d", version, addressVersion)) {
			t.Errorf("version %d: %v", version, err)
		}
	}
	for _, b := range [][]byte{nil, b[:19], append(b, 0)} {
		if _, err := parseAddress(b); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	}
}

func TestKey(t *testing.T) {
	d := &MemoryDomain{dev: Device{DeviceInfo: libcxi.DeviceInfo{NID: 77, PIDBits: 9}}}
	m := &Memory{d: d, key: 0x1234567890abcdef, region: hw.Region{Base: 0x1000, Len: 4096, Access: hw.RemoteRead}}
	k, err := d.UnpackKey(m.PackKey(nil))
	if err != nil {
		t.Fatal(err)
	}
	nid, pid, bits, off, err := remote(k, 0x1010, 16, hw.RemoteRead)
	if err != nil || nid != 77 || pid != 0 || bits != m.key || off != 16 {
		t.Errorf("%d %d %#x %d %v", nid, pid, bits, off, err)
	}
	for name, c := range map[string]struct {
		k    hw.RemoteKey
		addr uint64
		n    uint64
		need hw.Access
	}{
		"another right": {k, 0x1010, 16, hw.RemoteWrite}, "before": {k, 0xfff, 1, hw.RemoteRead},
		"behind":   {k, 0x2000, 1, hw.RemoteRead},
		"too long": {k, 0x1000, 4097, hw.RemoteRead}, "no key": {hw.RemoteKey{}, 0, 0, 0},
		"noise": {hw.RemoteKey{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}, 0, 1, 0},
	} {
		if _, _, _, _, err := remote(c.k, c.addr, c.n, c.need); !errors.Is(err, hw.ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, b := range [][]byte{nil, make([]byte, keyBytes), m.PackKey(nil)[:31]} {
		if _, err := d.UnpackKey(b); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	}
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]Config{
		"buffers": {RxBuffers: 3}, "bytes": {RxBytes: 1000}, "events": {RxEvents: 1}, "depth": {Depth: 5000},
		"stripes": {Stripes: -1},
		"queues":  {Queues: 65}, "bounce": {BounceBytes: 64}, "posted": {Posted: 8}, "name": {Name: make([]byte, 33)},
		"time": {KeepAlive: -1},
	} {
		c = c.withDefaults()
		if err := c.check(); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := Config{}.withDefaults()
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

// TestLowBits: what a message's match bits hold comes out again.
func TestLowBits(t *testing.T) {
	for _, pos := range []uint64{0, 1, 65535, 65536, 1 << 40} {
		id, head, kind, p := splitLow(lowBits(31, 192, kindBye, pos))
		if id != 31 || head != 192 || kind != kindBye || p != uint16(pos) {
			t.Errorf("%d: %d %d %d %d", pos, id, head, kind, p)
		}
	}
}

// TestCodes: what a peer's NIC says is either a full peer, a dead one, a broken path or a mistake.
func TestCodes(t *testing.T) {
	for code, want := range map[uint32]verdict{
		wire.RcOk: accepted, wire.RcEntryNotFound: refused, wire.RcPtDisabled: refused, wire.RcUndeliverable: lost,
		wire.RcPtlteNotFound: absent,
		wire.RcVniNotFound:   absent, wire.RcCmdInvalidArg: broken, wire.RcNoTranslation: broken,
	} {
		if got := judge(code); got != want {
			t.Errorf("%s: %d, want %d", codeText(code), got, want)
		}
	}
	for code, want := range map[uint32]error{
		wire.RcEntryNotFound: hw.ErrKey, wire.RcOpViolation: hw.ErrKey, wire.RcUndeliverable: hw.ErrPeerDead,
		wire.RcPtlteNotFound: hw.ErrPeerDead,
		wire.RcCmdInvalidArg: hw.ErrInvalid, wire.RcOk: nil,
	} {
		if got := codeError(code); !errors.Is(got, want) {
			t.Errorf("%s: %v", codeText(code), got)
		}
	}
}

// TestIDTable adds, replaces and removes peers.
func TestIDTable(t *testing.T) {
	table := newIDTable(0)
	var list []*Endpoint
	for n := range uint32(500) {
		e := &Endpoint{addr: address{nid: n * 3, pid: n % 512, pidBits: 9}}
		list = append(list, e)
		table = table.with(e)
	}
	twin := &Endpoint{addr: list[7].addr}
	table = table.with(twin).without(list[9])
	for n, e := range list {
		want := e
		switch n {
		case 7:
			want = twin
		case 9:
			want = nil
		}
		if got := table.find(e.addr.id()); got != want {
			t.Fatalf("peer %d: %p, want %p", n, got, want)
		}
	}
	if table.find(0xffffffff) != nil {
		t.Error("a peer that was never there")
	}
}

// TestDeviceFunction: libcxi's words for a NIC's PCI address, generation and link reach its description.
func TestDeviceFunction(t *testing.T) {
	d := domain(t).dev
	if d.PCI() != "0000:20:00.0" || d.Vendor != 0x1590 || d.Revision != 1 || d.LinkMbps != 200000 || d.MTU != 2048 {
		t.Errorf("%s, %+v", d.PCI(), d.DeviceInfo)
	}
}

// TestNodeName: a node and a service name an endpoint as users of libfabric's provider write them.
func TestNodeName(t *testing.T) {
	all := []Device{{DeviceInfo: libcxi.DeviceInfo{Name: "cxi0", NID: 16}},
		{DeviceInfo: libcxi.DeviceInfo{Name: "cxi1", NID: 0x12345}}}
	for _, c := range []struct {
		node, service string
		own           bool
		nid, pid      uint32
		ok            bool
	}{
		{"", "", true, 16, libcxi.AnyPID, true},
		{"", "7", true, 16, 7, true},
		{"", "0x1fe", true, 16, 510, true},
		{"", "511", true, 0, 0, false},
		{"", "0", true, 16, 0, true},
		{"", "017", true, 16, 15, true},
		{"", "0X1fE", true, 16, 510, true},
		{"", "0x", true, 0, 0, false},
		{"", "08", true, 0, 0, false},
		{"", "0b1", true, 0, 0, false},
		{"", "0o7", true, 0, 0, false},
		{"", "1_0", true, 0, 0, false},
		{"", "x", true, 0, 0, false},
		{"", "-1", false, 0, 0, false},
		{"cxi1", "", true, 0x12345, libcxi.AnyPID, true},
		{"cxi1", "", false, 0x12345, 0, true},
		{"cxi2", "", false, 0, 0, false},
		{"00:40:a6:f1:23:45", "9", false, 0x12345, 9, true},
		{"74565", "9", false, 0x12345, 9, true},
		{"0x12345", "010", false, 0x12345, 8, true},
		{"0x100000", "", false, 0, 0, false},
		{"10.0.0.1", "", false, 0, 0, false},
	} {
		b, err := all[0].NodeName(all, c.node, c.service, c.own)
		n, _ := proto.ParseName(b, 9)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, hw.ErrInvalid) ||
			c.ok && n != (proto.Name{NID: c.nid, PID: c.pid}) {
			t.Errorf("node %q, service %q: %+v, %v", c.node, c.service, n, err)
		}
	}
}
