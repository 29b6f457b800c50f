package info

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/names"
)

var v117 = fi.Version(1, 17)

// testEnv is a host with two networks, eth0 in both families.
func testEnv() *Env {
	p := netip.MustParsePrefix
	return &Env{
		Interfaces: func() ([]names.Interface, error) {
			return []names.Interface{
				{Name: "lo", Index: 1, Up: true, Loopback: true,
					Prefixes: []netip.Prefix{p("127.0.0.1/8"), p("::1/128")}},
				{Name: "eth0", Index: 2, Up: true,
					Prefixes: []netip.Prefix{p("10.0.0.5/24"), p("2001:db8::5/64"), p("fe80::5/64")}},
				{Name: "eth1", Index: 3, Up: true, Prefixes: []netip.Prefix{p("10.1.0.5/16")}},
			}, nil
		},
		Resolver: names.Resolver{
			Host: func(host string) ([]netip.Addr, error) {
				switch host {
				case "localhost":
					return []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}, nil
				case "self":
					return []netip.Addr{netip.MustParseAddr("127.0.1.1")}, nil
				case "remote":
					return []netip.Addr{netip.MustParseAddr("10.1.0.9")}, nil
				}
				return nil, errors.New("no such host")
			},
			Service: func(service string) (uint16, error) {
				if service == "weft" {
					return 7471, nil
				}
				return 0, errors.New("no such service")
			},
		},
		Route: func(dest names.Name) (names.Name, error) {
			for prefix, src := range map[string]string{"10.0.0.0/24": "10.0.0.5", "10.1.0.0/16": "10.1.0.5",
				"127.0.0.0/8": "127.0.0.1", "::1/128": "::1"} {
				if p(prefix).Contains(dest.Addr()) {
					return names.New(netip.MustParseAddr(src), 0), nil
				}
			}
			return names.Name{}, errors.New("no route")
		},
	}
}

// show writes offers as "domain source>destination", without the prefix of
// FI_ADDR_STR.
func show(t *testing.T, infos []*fi.Info) string {
	t.Helper()
	var list []string
	for _, i := range infos {
		s := i.Domain.Name + " " + address(t, i.AddrFormat, i.SrcAddr)
		if len(i.DestAddr) > 0 {
			s += ">" + address(t, i.AddrFormat, i.DestAddr)
		}
		list = append(list, s)
	}
	return strings.Join(list, ", ")
}

func address(t *testing.T, f fi.AddrFormat, b []byte) string {
	t.Helper()
	n, err := names.Decode(f, b)
	if err != nil {
		t.Fatal(err)
	}
	_, s, _ := strings.Cut(n.String(), "://")
	return s
}

// encoded returns an FI_ADDR_STR address in another format.
func encoded(t *testing.T, f fi.AddrFormat, s string) []byte {
	t.Helper()
	n, err := names.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	b, err := names.Encode(f, n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// get is GetInfo without node and service, which must succeed.
func get(t *testing.T, version uint32, hints *fi.Info) []*fi.Info {
	t.Helper()
	infos, err := testEnv().GetInfo(version, "", "", 0, hints, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) == 0 {
		t.Fatal("no offer and no error")
	}
	return infos
}

// newHints returns hints for FI_EP_RDM with every attribute present.
func newHints(set func(h *fi.Info)) *fi.Info {
	h := &fi.Info{Tx: &fi.TxAttr{}, Rx: &fi.RxAttr{}, EP: &fi.EPAttr{Type: fi.EPRDM},
		Domain: &fi.DomainAttr{}, Fabric: &fi.FabricAttr{}}
	if set != nil {
		set(h)
	}
	return h
}

// wantRefused checks that an error is FI_ENODATA and names an attribute.
func wantRefused(t *testing.T, err error, attr string) {
	t.Helper()
	if fi.ErrnoOf(err) != fi.ENODATA {
		t.Errorf("error %v, want ENODATA", err)
	} else if !strings.Contains(fmt.Sprint(err), "hint "+attr+" refused: ") {
		t.Errorf("error %q does not name %s", err, attr)
	}
}

func configWith(set func(c *config.Config)) *config.Config {
	c := config.Default()
	set(c)
	return c
}
