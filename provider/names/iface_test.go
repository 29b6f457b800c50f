package names

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func prefixes(list ...string) (p []netip.Prefix) {
	for _, s := range list {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}

// host is a host with two networks, given out of order.
func host() ([]Interface, error) {
	return []Interface{
		{Name: "eth1", Index: 3, Up: true, Prefixes: prefixes("10.1.0.9/16")},
		{Name: "lo", Index: 1, Up: true, Loopback: true, Prefixes: prefixes("127.0.0.1/8", "::1/128")},
		{Name: "eth0", Index: 2, Up: true, Prefixes: prefixes(
			"fe80::1/64", "2001:db8::5/64", "10.0.0.5/24", "10.0.0.6/24", "169.254.0.1/16")},
		{Name: "down", Index: 4, Prefixes: prefixes("10.2.0.1/24")},
		{Name: "odd", Index: 5, Up: true, Prefixes: prefixes("0.0.0.0/0", "224.0.0.1/4")},
	}, nil
}

func TestLocals(t *testing.T) {
	list, err := Locals(host)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range list {
		got = append(got, l.Iface+" "+l.Prefix.String()+" "+l.Name.String())
	}
	want := []string{
		"eth0 10.0.0.0/24 fi_sockaddr_in://10.0.0.5:0",
		"eth0 10.0.0.0/24 fi_sockaddr_in://10.0.0.6:0",
		"eth0 169.254.0.0/16 fi_sockaddr_in://169.254.0.1:0",
		"eth1 10.1.0.0/16 fi_sockaddr_in://10.1.0.9:0",
		"eth0 2001:db8::/64 fi_sockaddr_in6://[2001:db8::5]:0",
		"lo 127.0.0.0/8 fi_sockaddr_in://127.0.0.1:0",
		"lo ::1/128 fi_sockaddr_in6://[::1]:0",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestFind(t *testing.T) {
	for s, iface := range map[string]string{
		"fi_sockaddr_in://10.0.0.6:5":             "eth0",
		"fi_sockaddr_in://10.0.0.7:5":             "",
		"fi_sockaddr_in://127.0.0.1:5":            "lo",
		"fi_sockaddr_in://127.9.9.9:5":            "lo",
		"fi_sockaddr_in6://[::1]:5":               "lo",
		"fi_sockaddr_in6://[::2]:5":               "",
		"fi_sockaddr_in6://[fe80::1%2]:5":         "eth0",
		"fi_sockaddr_in6://[fe80::1%3]:5":         "",
		"fi_sockaddr_in6://[fe80::1]:5":           "",
		"fi_sockaddr_in6://[::ffff:10.1.0.9]:5":   "eth1",
		"fi_sockaddr_in://10.2.0.1:5":             "",
		"fi_sockaddr_in://0.0.0.0:5":              "",
		"fi_sockaddr_in6://[::]:5":                "",
		"fi_sockaddr_in6://[2001:db8::5]:5":       "eth0",
		"fi_sockaddr_in6://[::ffff:127.0.0.77]:5": "lo",
	} {
		n := name(t, s)
		l, ok, err := Find(host, n)
		if err != nil || ok != (iface != "") || l.Iface != iface {
			t.Errorf("%s: %+v, %v, %v, want %q", s, l, ok, err, iface)
		}
		if ok && l.Name != n.WithPort(0) {
			t.Errorf("%s is found as %v", s, l.Name)
		}
		if local, err := IsLocal(host, n); err != nil || local != ok {
			t.Errorf("%s: local %v, %v", s, local, err)
		}
	}
}

func TestSourceErrors(t *testing.T) {
	broken := errors.New("broken")
	src := func() ([]Interface, error) { return nil, broken }
	if _, err := Locals(src); !errors.Is(err, broken) {
		t.Errorf("locals: %v", err)
	}
	if _, _, err := Find(src, Any(AFInet, 0)); !errors.Is(err, broken) {
		t.Errorf("find: %v", err)
	}
	if _, err := IsLocal(src, Any(AFInet, 0)); !errors.Is(err, broken) {
		t.Errorf("is local: %v", err)
	}
}

func TestSystem(t *testing.T) {
	for _, s := range []string{"fi_sockaddr_in://127.0.0.1:0", "fi_sockaddr_in://127.0.1.1:0"} {
		if l, ok, err := Find(System, name(t, s)); err != nil || !ok || !l.Loopback {
			t.Errorf("%s on this host: %+v, %v, %v", s, l, ok, err)
		}
	}
	if local, err := IsLocal(System, name(t, "fi_sockaddr_in://203.0.113.77:0")); err != nil || local {
		t.Errorf("a documentation address is local: %v, %v", local, err)
	}
	list, err := Locals(System)
	if err != nil || len(list) == 0 {
		t.Fatalf("locals: %v, %v", list, err)
	}
}
