package names

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// testResolver knows one host with two addresses, one without, and one service.
var testResolver = Resolver{
	Host: func(host string) ([]netip.Addr, error) {
		switch host {
		case "both":
			return []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("10.0.0.1"),
				netip.MustParseAddr("::ffff:10.0.0.1")}, nil
		case "none":
			return nil, nil
		}
		return nil, errors.New("no such host")
	},
	Service: func(service string) (uint16, error) {
		if service == "weft" {
			return 7471, nil
		}
		return 0, errors.New("no such service")
	},
}

func TestResolve(t *testing.T) {
	for _, tc := range []struct {
		node, service string
		numeric       bool
		want          string
	}{
		{"10.0.0.1", "5", false, "fi_sockaddr_in://10.0.0.1:5"},
		{"10.0.0.1", "", true, "fi_sockaddr_in://10.0.0.1:0"},
		{"10.0.0.1", "weft", true, "fi_sockaddr_in://10.0.0.1:7471"},
		{"::1", "5", true, "fi_sockaddr_in6://[::1]:5"},
		{"fe80::1%1", "5", true, "fi_sockaddr_in6://[fe80::1%1]:5"},
		{"both", "5", false, "fi_sockaddr_in://10.0.0.1:5 fi_sockaddr_in6://[2001:db8::1]:5"},
		{"", "5", false, "fi_sockaddr_in://0.0.0.0:5 fi_sockaddr_in6://[::]:5"},
		{"fi_sockaddr_in://1.2.3.4:5", "", false, "fi_sockaddr_in://1.2.3.4:5"},
	} {
		got, err := testResolver.Resolve(tc.node, tc.service, tc.numeric)
		if s := strings.Trim(fmt.Sprint(got), "[]"); err != nil || s != strings.Trim(tc.want, "[]") {
			t.Errorf("%q, %q: %v, %v, want %v", tc.node, tc.service, got, err, tc.want)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	for _, tc := range []struct {
		node, service string
		numeric       bool
		want          fi.Errno
	}{
		{"both", "5", true, fi.ENODATA},
		{"nohost", "5", false, fi.ENODATA},
		{"none", "5", false, fi.ENODATA},
		{"10.0.0.1", "noservice", false, fi.ENODATA},
		{"10.0.0.1", "65536", false, fi.ENODATA},
		{"10.0.0.1", "-1", false, fi.ENODATA},
		{"fe80::1%nosuchinterface", "5", false, fi.ENODATA},
		{"fi_sockaddr_in://1.2.3.4:5", "5", false, fi.EINVAL},
		{"fi_sockaddr_in://1.2.3.4:x", "", false, fi.EINVAL},
	} {
		got, err := testResolver.Resolve(tc.node, tc.service, tc.numeric)
		if got != nil || !errors.Is(err, tc.want) || fi.ErrnoOf(err) != tc.want {
			t.Errorf("%q, %q: %v, %v, want %v", tc.node, tc.service, got, err, tc.want)
		}
	}
}

func TestSystemResolver(t *testing.T) {
	got, err := SystemResolver.Resolve("localhost", "5", false)
	if err != nil || got[0].String() != "fi_sockaddr_in://127.0.0.1:5" {
		t.Errorf("localhost: %v, %v", got, err)
	}
	if got, err := SystemResolver.Resolve("127.0.0.1", "no such service", false); fi.ErrnoOf(err) != fi.ENODATA {
		t.Errorf("unknown service: %v, %v", got, err)
	}
}

func TestRoute(t *testing.T) {
	for _, port := range []uint16{0, 5} {
		got, err := Route(name(t, "fi_sockaddr_in://127.0.0.1:0").WithPort(port))
		if err != nil || got.WithPort(0).String() != "fi_sockaddr_in://127.0.0.1:0" {
			t.Errorf("route to 127.0.0.1: %v, %v", got, err)
		}
	}
	if _, err := Route(Name{}); err == nil {
		t.Error("there is a route to nowhere")
	}
}
