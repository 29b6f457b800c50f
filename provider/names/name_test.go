package names

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// name parses an FI_ADDR_STR address that a test writes.
func name(t *testing.T, s string) Name {
	t.Helper()
	n, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var (
	in4 = []byte{2, 0, 0x1d, 0x2f, 10, 31, 6, 12, 0, 0, 0, 0, 0, 0, 0, 0}
	in6 = []byte{10, 0, 0x1d, 0x2f, 0, 0, 0, 0,
		0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0x12, 3, 0, 0, 0}
)

func TestSockaddrLayout(t *testing.T) {
	for _, tc := range []struct {
		bytes []byte
		str   string
	}{
		{in4, "fi_sockaddr_in://10.31.6.12:7471"},
		{in6, "fi_sockaddr_in6://[fe80::6:12%3]:7471"},
	} {
		n, err := FromSockaddr(tc.bytes)
		if err != nil {
			t.Fatal(err)
		}
		if n.String() != tc.str {
			t.Errorf("decoded %v, want %s", n, tc.str)
		}
		if got := n.AppendSockaddr(nil); !bytes.Equal(got, tc.bytes) {
			t.Errorf("%v encodes to %v, want %v", n, got, tc.bytes)
		}
		if n.SockaddrLen() != len(tc.bytes) {
			t.Errorf("length of %v is %d", n, n.SockaddrLen())
		}
		if name(t, tc.str) != n {
			t.Errorf("%s parses to %v", tc.str, name(t, tc.str))
		}
		longer, err := FromSockaddr(append(bytes.Clone(tc.bytes), 1, 2, 3))
		if err != nil || longer != n {
			t.Errorf("in a longer buffer: %v, %v", longer, err)
		}
	}
}

func TestFlowLabelAndPaddingAreNotPartOfAName(t *testing.T) {
	a, b := bytes.Clone(in6), bytes.Clone(in4)
	a[5], b[12] = 9, 9
	n6, err6 := FromSockaddr(a)
	n4, err4 := FromSockaddr(b)
	if err4 != nil || err6 != nil || n6 != name(t, "fi_sockaddr_in6://[fe80::6:12%3]:7471") ||
		n4 != name(t, "fi_sockaddr_in://10.31.6.12:7471") {
		t.Errorf("names %v, %v", n4, n6)
	}
}

func TestFromSockaddrRefuses(t *testing.T) {
	for what, b := range map[string][]byte{
		"nothing": nil, "one byte": {2}, "a short sockaddr_in": in4[:15],
		"a short sockaddr_in6": in6[:27], "family 0": make([]byte, 28), "a path": {1, 0, '/', 'x'},
	} {
		if n, err := FromSockaddr(b); !errors.Is(err, fi.EINVAL) || !n.IsZero() {
			t.Errorf("%s: %v, %v", what, n, err)
		}
	}
}

func TestParse(t *testing.T) {
	for s, want := range map[string]string{
		"fi_sockaddr://10.0.0.1:5":             "fi_sockaddr_in://10.0.0.1:5",
		"fi_sockaddr://[2001:db8::1]:5":        "fi_sockaddr_in6://[2001:db8::1]:5",
		"fi_sockaddr_in://10.0.0.1":            "fi_sockaddr_in://10.0.0.1:0",
		"fi_sockaddr_in://10.0.0.1:":           "fi_sockaddr_in://10.0.0.1:0",
		"fi_sockaddr_in://:65535":              "fi_sockaddr_in://0.0.0.0:65535",
		"fi_sockaddr://:1":                     "fi_sockaddr_in://0.0.0.0:1",
		"fi_sockaddr_in6://:1":                 "fi_sockaddr_in6://[::]:1",
		"fi_sockaddr_in6://[::1]":              "fi_sockaddr_in6://[::1]:0",
		"fi_sockaddr_in6://[fe80::1%lo]:2":     "fi_sockaddr_in6://[fe80::1%1]:2",
		"fi_sockaddr_in6://[::ffff:1.2.3.4]:2": "fi_sockaddr_in6://[::ffff:1.2.3.4]:2",
	} {
		if got := name(t, s); got.String() != want {
			t.Errorf("%s is %v, want %s", s, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"", "10.0.0.1:5", "fi_sockaddr_ib://1:2", "fi_sockaddr_in:/10.0.0.1:5",
		"fi_sockaddr_in://10.0.0:5", "fi_sockaddr_in://10.0.0.1:65536", "fi_sockaddr_in://10.0.0.1:-1",
		"fi_sockaddr_in://10.0.0.1:http", "fi_sockaddr_in://[::1]:5", "fi_sockaddr_in6://10.0.0.1:5",
		"fi_sockaddr_in6://::1:5", "fi_sockaddr_in6://[::1", "fi_sockaddr_in6://[::1]5",
		"fi_sockaddr_in6://[]:5", "fi_sockaddr_in6://[10.0.0.1]:5", "fi_sockaddr_in://[10.0.0.1]:5",
		"fi_sockaddr_in6://[fe80::1%nosuchinterface]:5", "fi_sockaddr_in://10.0.0.1:5/0",
		"fi_sockaddr_in://10.0.0.1:5?qos=3", "fi_sockaddr_in://host:5",
	} {
		if n, err := Parse(s); !errors.Is(err, fi.EINVAL) || !n.IsZero() {
			t.Errorf("%q parses to %v, %v", s, n, err)
		}
	}
}

func TestFormats(t *testing.T) {
	n4, n6 := name(t, "fi_sockaddr_in://1.2.3.4:5"), name(t, "fi_sockaddr_in6://[::1]:5")
	for _, tc := range []struct {
		f        fi.AddrFormat
		has4     bool
		has6     bool
		len4     int
		len6     int
		isString bool
	}{
		{fi.FormatUnspec, true, true, 16, 28, false},
		{fi.Sockaddr, true, true, 16, 28, false},
		{fi.SockaddrIP, true, true, 16, 28, false},
		{fi.SockaddrIn, true, false, 16, 0, false},
		{fi.SockaddrIn6, false, true, 0, 28, false},
		{fi.AddrStr, true, true, 27, 26, true},
		{fi.SockaddrIB, false, false, 0, 0, false},
		{fi.AddrEFA, true, true, 32, 32, false},
		{fi.AddrCXI, true, true, 32, 32, false},
		{fi.AddrPSMX3, false, false, 0, 0, false},
	} {
		for _, c := range []struct {
			n    Name
			has  bool
			want int
		}{{n4, tc.has4, tc.len4}, {n6, tc.has6, tc.len6}, {Name{}, false, 0}} {
			if Fits(tc.f, c.n) != c.has {
				t.Errorf("format %d fits %v: %v", tc.f, c.n, !c.has)
			}
			b, err := Encode(tc.f, c.n)
			if len(b) != c.want || (err == nil) != c.has || err != nil && !errors.Is(err, fi.EINVAL) {
				t.Errorf("format %d of %v: %q, %v", tc.f, c.n, b, err)
			}
			if !c.has {
				continue
			}
			if tc.isString && b[len(b)-1] != 0 {
				t.Errorf("string %q does not end with NUL", b)
			}
			back, err := Decode(tc.f, append(b, "junk"...))
			if err != nil || back != c.n {
				t.Errorf("format %d: %v comes back as %v, %v", tc.f, c.n, back, err)
			}
		}
	}
	if _, err := Decode(fi.SockaddrIn, in6); !errors.Is(err, fi.EINVAL) {
		t.Errorf("IPv6 as FI_SOCKADDR_IN: %v", err)
	}
	if n, err := Decode(fi.AddrStr, []byte("fi_sockaddr_in://1.2.3.4:5")); err != nil || n != n4 {
		t.Errorf("string without NUL: %v, %v", n, err)
	}
}

func TestMaxLen(t *testing.T) {
	n := New(netip.MustParseAddr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), 65535)
	n.Scope = 1<<32 - 1
	b, err := Encode(fi.AddrStr, n)
	if err != nil || len(b) != MaxLen {
		t.Errorf("longest string has %d bytes, want %d (%v)", len(b), MaxLen, err)
	}
}

func TestNameMethods(t *testing.T) {
	n := name(t, "fi_sockaddr_in://127.0.0.1:5")
	if !n.IsLoopback() || n.IsAny() || n.IsZero() || n.Addr() != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("%v: loopback %v, any %v, zero %v, %v", n, n.IsLoopback(), n.IsAny(), n.IsZero(), n.Addr())
	}
	if m := name(t, "fi_sockaddr_in6://[::ffff:127.0.0.1]:5"); !m.IsLoopback() || m == n {
		t.Errorf("mapped loopback: %v", m)
	}
	if !Any(AFInet, 7).IsAny() || !Any(AFInet6, 0).IsAny() || (Name{}).IsAny() || (Name{}).IsLoopback() {
		t.Error("wildcards")
	}
	if got := Any(AFInet, 7).WithAddrOf(n); got.String() != "fi_sockaddr_in://127.0.0.1:7" {
		t.Errorf("wildcard becomes %v", got)
	}
	if !New(netip.Addr{}, 7).IsZero() || (Name{}).SockaddrLen() != 0 || len((Name{}).AppendSockaddr(nil)) != 0 {
		t.Error("the zero name encodes")
	}
	if (Name{}).String() != "fi_sockaddr:unspecified" || (Name{}).Addr().IsValid() {
		t.Error("the zero name has an address")
	}
}

func FuzzFromSockaddr(f *testing.F) {
	f.Add(in4)
	f.Add(in6)
	f.Add([]byte{10, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := FromSockaddr(b)
		if err != nil {
			if !n.IsZero() || !errors.Is(err, fi.EINVAL) {
				t.Fatalf("%v with %v", n, err)
			}
			return
		}
		again, err := FromSockaddr(n.AppendSockaddr(nil))
		if err != nil || again != n {
			t.Fatalf("%v comes back as %v, %v", n, again, err)
		}
		if fromStr, err := Parse(n.String()); n.Family == AFInet && (err != nil || fromStr != n) {
			t.Fatalf("%v comes back from its string as %v, %v", n, fromStr, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"fi_sockaddr_in://1.2.3.4:5", "fi_sockaddr_in6://[fe80::1%2]:5",
		"fi_sockaddr://[::]", "fi_sockaddr://:0", "fi_sockaddr_in://1.2.3.4:5?x=y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := Decode(fi.AddrStr, []byte(s))
		if err != nil {
			if !n.IsZero() || !errors.Is(err, fi.EINVAL) {
				t.Fatalf("%v with %v", n, err)
			}
			return
		}
		if !strings.HasPrefix(s, "fi_sockaddr") {
			t.Fatalf("%q parses to %v", s, n)
		}
		again, err := Parse(n.String())
		if err != nil || again != n {
			t.Fatalf("%v comes back as %v, %v", n, again, err)
		}
		if b, err := Encode(fi.AddrStr, n); err != nil || len(b) > MaxLen {
			t.Fatalf("%v encodes to %q, %v", n, b, err)
		}
	})
}

// TestAppendFixed: two addresses of one endpoint have the same in common, and two endpoints not.
func TestAppendFixed(t *testing.T) {
	word := func(b byte) Name {
		n, err := fromWord([]byte{b, 0, 0, 0, 0, 0, 0, 0})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	fixed := func(n Name) string { return string(n.AppendFixed(nil)) }
	a, b := New(netip.MustParseAddr("10.0.0.5"), 7), New(netip.MustParseAddr("2001:db8::5"), 7)
	if fixed(a) != fixed(b) || fixed(a) == fixed(a.WithPort(8)) || fixed(word(1)) == fixed(word(2)) ||
		fixed(word(1)) != fixed(word(1).WithKey(3)) {
		t.Errorf("% x, % x, % x", fixed(a), fixed(b), fixed(word(1)))
	}
}
