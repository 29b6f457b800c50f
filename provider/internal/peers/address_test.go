package peers

import (
	"net/netip"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/names"
)

// TestAddress: an address is read as it was written, and says what it is.
func TestAddress(t *testing.T) {
	four := names.New(netip.MustParseAddr("10.0.0.5"), 7)
	six := names.New(netip.MustParseAddr("2001:db8::5"), 7)
	for _, c := range []struct {
		a     Address
		bytes int // behind the socket address
		text  string
	}{
		{Address{Name: four}, 0, "fi_sockaddr_in://10.0.0.5:7"},
		{Address{Name: six, Number: 3}, 4, "fi_sockaddr_in6://[2001:db8::5]:7.3"},
		{Address{Name: four, Number: FirstTx + 1}, 4, ""},
		{Address{Name: four.WithKey(2)}, 8, "fi_sockaddr_in://10.0.0.5:7 with authorisation key 1"},
		{Address{Name: six.WithKey(2), Number: 1}, 8, ""},
	} {
		raw := c.a.Raw()
		if got, err := ParseAddress(raw); err != nil || got != c.a || len(raw)-c.a.SockaddrLen() != c.bytes {
			t.Errorf("%v: %v in %d bytes, %v", c.a, got, len(raw), err)
		}
		if text := c.a.String(); c.text != "" && text != c.text {
			t.Errorf("%q, want %q", text, c.text)
		}
	}
}

// TestAddressRefused: what no address gives is not read.
func TestAddressRefused(t *testing.T) {
	raw := names.New(netip.MustParseAddr("10.0.0.5"), 7).AppendSockaddr(nil)
	for what, b := range map[string][]byte{
		"nothing":         nil,
		"half a number":   append(raw[:len(raw):len(raw)], 1, 0),
		"a number beyond": append(raw[:len(raw):len(raw)], 2*FirstTx, 0, 0, 0),
		"a large number":  append(raw[:len(raw):len(raw)], 1, 0, 0, 1),
		"half a key":      append(raw[:len(raw):len(raw)], 1, 0, 0, 0, 1),
	} {
		if a, err := ParseAddress(b); fi.ErrnoOf(err) != fi.EINVAL {
			t.Errorf("%s: %v, %v", what, a, err)
		}
	}
}

func FuzzAddress(f *testing.F) {
	for _, a := range []Address{
		{names.New(netip.MustParseAddr("127.0.0.1"), 1), 0}, {names.New(netip.MustParseAddr("127.0.0.1"), 2), 127},
		{names.Name{Family: names.AFInet6, Port: 3, Scope: 2}, 1},
	} {
		f.Add(a.Raw())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseAddress(b)
		if err != nil {
			return
		}
		again, err := ParseAddress(a.Raw())
		if err != nil || again != a || a.Number >= 2*FirstTx {
			t.Errorf("% x is %v, then %v %v", b, a, again, err)
		}
	})
}
