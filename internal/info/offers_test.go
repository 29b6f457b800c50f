package info

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/log/logtest"
	"github.com/weft-fabric/weft/provider/names"
)

// everyAddress is the offer without any wish.
const everyAddress = "eth0 10.0.0.5:0, eth1 10.1.0.5:0, eth0 [2001:db8::5]:0, lo 127.0.0.1:0, lo [::1]:0"

// addressCases has arguments and hints about addresses, and what is offered or
// the attribute that is refused.
var addressCases = []struct {
	name, node, service string
	flags               uint64
	hints               func(t *testing.T, h *fi.Info)
	want                string
	refused             string
}{
	{name: "everything", want: everyAddress},
	{name: "source node", node: "localhost", flags: fi.Source, want: "lo 127.0.0.1:0, lo [::1]:0"},
	{name: "source service", service: "9228", flags: fi.Source,
		want: "eth0 0.0.0.0:9228, eth1 0.0.0.0:9228, eth0 [::]:9228, lo 0.0.0.0:9228, lo [::]:9228"},
	{name: "source wildcard", node: "0.0.0.0", flags: fi.Source, want: "eth0 10.0.0.5:0, eth1 10.1.0.5:0, lo " +
		"127.0.0.1:0"},
	{name: "source wildcard, port", node: "::", service: "weft", flags: fi.Source,
		want: "eth0 [::]:7471, lo [::]:7471"},
	{name: "source both", node: "10.1.0.5", service: "weft", flags: fi.Source, want: "eth1 10.1.0.5:7471"},
	{name: "source numeric", node: "2001:db8::5", service: "5", flags: fi.Source | fi.NumericHost,
		want: "eth0 [2001:db8::5]:5"},
	{name: "source in loopback net", node: "self", service: "5", flags: fi.Source, want: "lo 127.0.1.1:5"},
	{name: "source string", node: "fi_sockaddr_in://10.0.0.5:5", flags: fi.Source, want: "eth0 10.0.0.5:5"},
	{name: "source elsewhere", node: "10.0.0.6", service: "5", flags: fi.Source, refused: "src_addr"},
	{name: "source with destination", node: "10.1.0.5", flags: fi.Source,
		hints: func(t *testing.T, h *fi.Info) {
			h.DestAddr = encoded(t, fi.Sockaddr, "fi_sockaddr_in://10.1.0.9:5")
			h.SrcAddr = []byte("ignored")
		}, want: "eth1 10.1.0.5:0>10.1.0.9:5"},

	{name: "remote node", node: "remote", service: "5", want: "eth1 10.1.0.5:0>10.1.0.9:5, eth0 10.0.0.5:0>10.1.0.9:5"},
	{name: "unroutable node", node: "192.168.0.1", service: "5", want: "eth0 10.0.0.5:0>192.168.0.1:5, eth1 " +
		"10.1.0.5:0>192.168.0.1:5"},
	{name: "loopback node", node: "localhost", service: "5",
		want: "lo 127.0.0.1:0>127.0.0.1:5, lo [::1]:0>[::1]:5, eth0 10.0.0.5:0>127.0.0.1:5, eth1 " +
			"10.1.0.5:0>127.0.0.1:5, eth0 [2001:db8::5]:0>[::1]:5"},
	{name: "own node", node: "10.0.0.5", service: "5", want: "eth0 10.0.0.5:0>10.0.0.5:5, eth1 " +
		"10.1.0.5:0>10.0.0.5:5, lo 127.0.0.1:0>10.0.0.5:5"},
	{name: "service only", service: "5", hints: func(t *testing.T, h *fi.Info) { h.AddrFormat = fi.SockaddrIn },
		want: "lo 127.0.0.1:0>127.0.0.1:5, eth0 10.0.0.5:0>127.0.0.1:5, eth1 10.1.0.5:0>127.0.0.1:5"},
	{name: "IPv6 node", node: "2001:db8::9", service: "5", want: "eth0 [2001:db8::5]:0>[2001:db8::9]:5"},
	{name: "node and source hint", node: "remote", service: "5",
		hints: func(t *testing.T, h *fi.Info) {
			h.SrcAddr = encoded(t, fi.SockaddrIn, "fi_sockaddr_in://10.0.0.5:77")
			h.DestAddr = []byte("ignored")
		}, want: "eth0 10.0.0.5:77>10.1.0.9:5"},
	{name: "IPv4 node in IPv6", node: "10.1.0.9", service: "5",
		hints: func(t *testing.T, h *fi.Info) { h.AddrFormat = fi.SockaddrIn6 }, refused: "dest_addr"},
	{name: "node and domain", node: "remote", hints: func(t *testing.T, h *fi.Info) { h.Domain.Name = "eth0" },
		want: "eth0 10.0.0.5:0>10.1.0.9:0"},
	{name: "remote node from loopback", node: "remote", hints: func(t *testing.T, h *fi.Info) { h.Domain.Name = "lo" },
		refused: "domain_attr.name"},

	{name: "source hint", hints: func(t *testing.T, h *fi.Info) {
		h.SrcAddr = encoded(t, fi.SockaddrIn, "fi_sockaddr_in://10.1.0.5:5")
	}, want: "eth1 10.1.0.5:5"},
	{name: "both hints", hints: func(t *testing.T, h *fi.Info) {
		h.AddrFormat = fi.AddrStr
		h.SrcAddr = []byte("fi_sockaddr_in://10.1.0.5:5\x00")
		h.DestAddr = []byte("fi_sockaddr_in://10.1.0.9:6\x00")
	}, want: "eth1 10.1.0.5:5>10.1.0.9:6"},
	{name: "source hint elsewhere", hints: func(t *testing.T, h *fi.Info) {
		h.SrcAddr = encoded(t, fi.SockaddrIn, "fi_sockaddr_in://10.1.0.6:5")
	}, refused: "src_addr"},
	{name: "malformed source hint", hints: func(t *testing.T, h *fi.Info) { h.SrcAddr = []byte{2, 0, 5} },
		refused: "src_addr"},
	{name: "malformed destination hint", hints: func(t *testing.T, h *fi.Info) { h.DestAddr = make([]byte, 16) },
		refused: "dest_addr"},
	{name: "hint of another family", hints: func(t *testing.T, h *fi.Info) {
		h.AddrFormat = fi.SockaddrIn6
		h.SrcAddr = encoded(t, fi.SockaddrIn, "fi_sockaddr_in://10.1.0.5:5")
	}, refused: "src_addr"},

	{name: "IPv4", hints: func(t *testing.T, h *fi.Info) { h.AddrFormat = fi.SockaddrIn },
		want: "eth0 10.0.0.5:0, eth1 10.1.0.5:0, lo 127.0.0.1:0"},
	{name: "IPv6", hints: func(t *testing.T, h *fi.Info) { h.AddrFormat = fi.SockaddrIn6 },
		want: "eth0 [2001:db8::5]:0, lo [::1]:0"},
	{name: "either", hints: func(t *testing.T, h *fi.Info) { h.AddrFormat = fi.Sockaddr }, want: everyAddress},
	{name: "IP", hints: func(t *testing.T, h *fi.Info) { h.AddrFormat = fi.SockaddrIP }, want: everyAddress},
	{name: "string", hints: func(t *testing.T, h *fi.Info) { h.AddrFormat = fi.AddrStr }, want: everyAddress},
	{name: "infiniband", hints: func(t *testing.T, h *fi.Info) { h.AddrFormat = fi.SockaddrIB },
		refused: "addr_format"},
	{name: "efa", hints: func(t *testing.T, h *fi.Info) { h.AddrFormat = fi.AddrEFA }, refused: "addr_format"},
}

func TestAddresses(t *testing.T) {
	for _, tc := range addressCases {
		t.Run(tc.name, func(t *testing.T) {
			hints := newHints(nil)
			if tc.hints != nil {
				tc.hints(t, hints)
			}
			infos, err := testEnv().GetInfo(v117, tc.node, tc.service, tc.flags, hints, nil)
			if tc.refused != "" {
				wantRefused(t, err, tc.refused)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := show(t, infos); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestReturnedFormat(t *testing.T) {
	for asked, want := range map[fi.AddrFormat][2]fi.AddrFormat{
		fi.FormatUnspec: {fi.SockaddrIn, fi.SockaddrIn6},
		fi.Sockaddr:     {fi.Sockaddr, fi.Sockaddr},
		fi.SockaddrIP:   {fi.SockaddrIP, fi.SockaddrIP},
		fi.AddrStr:      {fi.AddrStr, fi.AddrStr},
	} {
		infos := get(t, v117, newHints(func(h *fi.Info) { h.AddrFormat = asked }))
		if f := [2]fi.AddrFormat{infos[0].AddrFormat, infos[2].AddrFormat}; f != want {
			t.Errorf("format %d gives %d, want %d", asked, f, want)
		}
	}
	infos := get(t, v117, newHints(func(h *fi.Info) { h.AddrFormat = fi.AddrStr }))
	if s := string(infos[0].SrcAddr); s != "fi_sockaddr_in://10.0.0.5:0\x00" {
		t.Errorf("string address %q", s)
	}
}

func TestInterfaceVariable(t *testing.T) {
	cfg := configWith(func(c *config.Config) { c.Iface = "eth1" })
	infos, err := testEnv().GetInfo(v117, "", "", 0, newHints(nil), cfg)
	if err != nil || show(t, infos) != "eth1 10.1.0.5:0" {
		t.Errorf("offers %s, %v", show(t, infos), err)
	}
	warned := logtest.Capture(t, log.Warn)
	_, err = testEnv().GetInfo(v117, "", "", 0, nil, configWith(func(c *config.Config) { c.Iface = "eth9" }))
	seen := warned()
	if !errors.Is(err, fi.ENODATA) || len(seen) != 1 || !strings.Contains(seen[0], `FI_WEFT_IFACE="eth9"`) {
		t.Errorf("an interface that is not there: %v, warnings %q", err, seen)
	}
}

func TestInjectVariable(t *testing.T) {
	cfg := configWith(func(c *config.Config) { c.InjectSize = 64 })
	infos, err := testEnv().GetInfo(v117, "", "", 0, nil, cfg)
	if err != nil || infos[0].Tx.InjectSize != 64 {
		t.Errorf("inject size %d, %v", infos[0].Tx.InjectSize, err)
	}
	_, err = testEnv().GetInfo(v117, "", "", 0, newHints(func(h *fi.Info) { h.Tx.InjectSize = 65 }), cfg)
	wantRefused(t, err, "tx_attr.inject_size")
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		name, node, service string
		version             uint32
		flags               uint64
		want                fi.Errno
	}{
		{"unknown flag", "", "", v117, fi.LocalComm, fi.EBADFLAGS},
		{"flag of another call", "", "", v117, fi.Peek, fi.EBADFLAGS},
		{"source of nothing", "", "", v117, fi.Source, fi.EINVAL},
		{"no host", "nohost", "5", v117, 0, fi.ENODATA},
		{"no numeric host", "localhost", "5", v117, fi.NumericHost, fi.ENODATA},
		{"no service", "localhost", "noservice", v117, 0, fi.ENODATA},
		{"string with service", "fi_sockaddr_in://10.0.0.5:5", "5", v117, fi.Source, fi.EINVAL},
	} {
		infos, err := testEnv().GetInfo(tc.version, tc.node, tc.service, tc.flags, nil, nil)
		if infos != nil || fi.ErrnoOf(err) != tc.want {
			t.Errorf("%s: %v, %v, want %v", tc.name, infos, err, tc.want)
		}
	}
}

func TestFlagsThatAreAccepted(t *testing.T) {
	for _, flags := range []uint64{fi.NumericHost, fi.Rescan, 1 << 58, 1 << 59, 1 << 60, 1 << 61} {
		want := 15
		if flags == layered {
			want = 5
		}
		if infos, err := testEnv().GetInfo(v117, "", "", flags, nil, nil); err != nil || len(infos) != want {
			t.Errorf("flags %#x: %d offers, %v", flags, len(infos), err)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, v := range []uint32{fi.Version(1, 0), fi.Version(1, 5), fi.Version(1, 9), v117, fi.Version(2, 6)} {
		for _, i := range get(t, v, nil) {
			if i.Fabric.APIVersion != v {
				t.Errorf("api version %#x is returned as %#x", v, i.Fabric.APIVersion)
			}
		}
	}
}

func TestProvAttrOnly(t *testing.T) {
	hints := newHints(func(h *fi.Info) { h.EP.Type, h.Caps = fi.EPMsg, fi.RMA })
	infos, err := testEnv().GetInfo(v117, "nohost", "", fi.ProvAttrOnly, hints, nil)
	want := []*fi.Info{newHints(func(h *fi.Info) {
		h.EP.Type, h.Fabric.ProvName, h.Fabric.ProvVersion = fi.EPUnspec, "weft", ProvVersion
	})}
	if err != nil || !reflect.DeepEqual(infos, want) {
		t.Errorf("got %+v, %v", infos, err)
	}
	_, err = testEnv().GetInfo(v117, "", "", fi.ProvAttrOnly|layered, nil, nil)
	wantRefused(t, err, "flags") // it would read a fabric's name
}

func TestNoHints(t *testing.T) {
	for _, i := range get(t, v117, nil) {
		if i.Tx.MsgOrder != fi.OrderSAS || i.Rx.MsgOrder != fi.OrderSAS {
			t.Errorf("no hints give order %#x, %#x", i.Tx.MsgOrder, i.Rx.MsgOrder)
		}
		if i.Fabric.ProvName != "weft" || i.Fabric.Name == "" || i.Domain.Name == "" || len(i.SrcAddr) == 0 {
			t.Errorf("incomplete: %+v %+v", *i, *i.Fabric)
		}
	}
}

// TestAbsentAttributesAreWildcards gives hints whose attributes C left NULL.
func TestAbsentAttributesAreWildcards(t *testing.T) {
	unspecified := newHints(nil)
	unspecified.EP.Type = fi.EPUnspec
	a, b := get(t, v117, &fi.Info{}), get(t, v117, unspecified)
	if !reflect.DeepEqual(a, b) {
		t.Error("absent attributes are not wildcards")
	}
}

func TestOffersAreIndependent(t *testing.T) {
	hints := newHints(func(h *fi.Info) { h.Caps = fi.Msg })
	before := hints.Clone()
	infos := get(t, v117, hints)
	want := infos[1].Clone()
	infos[0].Tx.Size, infos[0].SrcAddr[0], infos[0].Domain.Name = 7, 7, "x"
	if !reflect.DeepEqual(infos[1], want) {
		t.Error("offers share attributes")
	}
	if !reflect.DeepEqual(hints, before) {
		t.Error("hints were changed")
	}
}

func TestInterfaceErrorsAreReported(t *testing.T) {
	broken := errors.New("netlink is down")
	e := testEnv()
	e.Interfaces = func() ([]names.Interface, error) { return nil, broken }
	for _, node := range []string{"", "10.0.0.5"} {
		if _, err := e.GetInfo(v117, node, "", fi.NumericHost, nil, nil); !errors.Is(err, broken) {
			t.Errorf("node %q: %v", node, err)
		}
	}
	if _, err := e.GetInfo(v117, "10.0.0.5", "", fi.Source, nil, nil); !errors.Is(err, broken) {
		t.Errorf("source: %v", err)
	}
}

func TestNoNetwork(t *testing.T) {
	e := testEnv()
	e.Interfaces = func() ([]names.Interface, error) { return nil, nil }
	_, err := e.GetInfo(v117, "", "", 0, nil, nil)
	wantRefused(t, err, "src_addr")
}

func TestThisHost(t *testing.T) {
	infos, err := System(0).GetInfo(v117, "127.0.0.1", "5", 0, nil, nil)
	if err != nil || !strings.HasPrefix(show(t, infos), "lo 127.0.0.1:0>127.0.0.1:5") {
		t.Errorf("offers for 127.0.0.1: %s, %v", show(t, infos), err)
	}
}
