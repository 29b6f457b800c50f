package provider

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/names"
)

// testInfo describes a domain as GetInfo does.
func testInfo() *fi.Info {
	return &fi.Info{
		Caps:       fi.Msg | fi.Tagged | fi.Send | fi.Recv | fi.LocalComm,
		AddrFormat: fi.Sockaddr,
		Tx:         &fi.TxAttr{Caps: fi.Msg | fi.Tagged | fi.Send, Size: 1024, InjectSize: 4096, IOVLimit: 4},
		Domain:     &fi.DomainAttr{Name: "lo", Threading: fi.ThreadSafe},
		Fabric:     &fi.FabricAttr{Name: "127.0.0.0/8"},
	}
}

// testInterfaces is a host with a loopback network and one address each of
// both families.
func testInterfaces() ([]names.Interface, error) {
	return []names.Interface{
		{Name: "lo", Index: 1, Up: true, Loopback: true, Prefixes: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.1/8"), netip.MustParsePrefix("::1/128")}},
		{Name: "net0", Index: 2, Up: true, Prefixes: []netip.Prefix{
			netip.MustParsePrefix("10.1.2.3/24"), netip.MustParsePrefix("2001:db8::1/64")}},
	}, nil
}

// testResolver knows node<number> as 127.<number>.0.1 and service "discard".
var testResolver = names.Resolver{
	Host: func(host string) ([]netip.Addr, error) {
		if host == "both" {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}, nil
		}
		rest, ok := strings.CutPrefix(host, "node")
		if !ok || len(rest) == 0 || len(rest) > 2 {
			return nil, errors.New("no such host")
		}
		n := byte(0)
		for _, c := range rest {
			n = n*10 + byte(c-'0')
		}
		return []netip.Addr{netip.AddrFrom4([4]byte{127, n, 0, 1})}, nil
	},
	Service: func(service string) (uint16, error) {
		if service == "discard" {
			return 9, nil
		}
		return 0, errors.New("no such service")
	},
}

// openTestDomain opens a domain on the test host. Closing it at the end of the
// test checks that nothing is left open.
func openTestDomain(t testing.TB, i *fi.Info) *Domain {
	t.Helper()
	return openTestDomainWith(t, i, testConfig(t))
}

// testConfig is the default configuration with a directory of the test's own.
func testConfig(t testing.TB) *config.Config {
	t.Helper()
	cfg := *config.Default()
	cfg.SHMDir, cfg.SHMAcross = t.TempDir(), config.No // in the place of /dev/shm
	return &cfg
}

func openTestDomainWith(t testing.TB, i *fi.Info, cfg *config.Config) *Domain {
	t.Helper()
	f := &Fabric{attr: fi.FabricAttr{Name: i.Fabric.Name}, cfg: cfg}
	d, err := f.OpenDomain(i)
	if err != nil {
		t.Fatal(err)
	}
	d.local.Use(testInterfaces)
	d.resolver = testResolver
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close domain: %v", err)
		}
		if err := f.Close(); err != nil {
			t.Errorf("close fabric: %v", err)
		}
	})
	return d
}

// openTestAV opens an address vector that is closed at the end of the test.
func openTestAV(t testing.TB, d *Domain, attr fi.AVAttr) *AV {
	t.Helper()
	a, err := d.OpenAV(&attr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Errorf("close address vector: %v", err)
		}
	})
	return a
}

// wantErrno fails the test unless err carries the errno.
func wantErrno(t testing.TB, err error, want fi.Errno, what string) {
	t.Helper()
	if got := fi.ErrnoOf(err); got != want {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// rawNames encodes names as an array for Insert.
func rawNames(list ...names.Name) (b []byte) {
	for _, n := range list {
		b = n.AppendSockaddr(b)
	}
	return b
}

// insertAll inserts names and fails the test unless all succeed.
func insertAll(t testing.TB, a *AV, list ...names.Name) []fi.Addr {
	t.Helper()
	in := Insertion{Addrs: make([]fi.Addr, len(list))}
	n, err := a.Insert(rawNames(list...), len(list), &in)
	if err != nil || n != len(list) {
		t.Fatalf("inserted %d of %d: %v", n, len(list), err)
	}
	return in.Addrs
}

// leasedOf is an enabled endpoint as the holder of the progress lease has it, for tests in which no other thread uses
// it or which have taken the lease.
func leasedOf(e *Endpoint) *leasedEP { return e.leased.Alone() }
