package names

import (
	"net/netip"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// nameAt is port 1 of an address.
func nameAt(s string) Name { return New(netip.MustParseAddr(s), 1) }

// TestReserve: a name is one socket's as long as that is open, and a wildcard's port is so at each address.
func TestReserve(t *testing.T) {
	for _, want := range []Name{nameAt("127.0.0.1").WithPort(0), Any(AFInet, 0)} {
		s, n, err := Reserve(want, "", "")
		if err != nil {
			t.Fatal(err)
		}
		if n.Port == 0 || n.IsAny() || s.Inet != want.IsAny() || s.Inet6 {
			t.Errorf("%v: name %v, all addresses of families %v, %v", want, n, s.Inet, s.Inet6)
		}
		for _, again := range []Name{want.WithPort(n.Port), nameAt("127.0.0.1").WithPort(n.Port)} {
			if _, _, err := Reserve(again, "", ""); fi.ErrnoOf(err) != fi.EADDRINUSE {
				t.Errorf("%v again: %v", again, err)
			}
		}
		s.Close()
		s, _, err = Reserve(want.WithPort(n.Port), "", "")
		if err != nil {
			t.Fatalf("%v after close: %v", want, err)
		}
		s.Close()
	}
	if _, _, err := Reserve(nameAt("198.51.100.1"), "", ""); fi.ErrnoOf(err) != fi.EADDRNOTAVAIL {
		t.Errorf("an address of another host: %v", err)
	}
	if _, _, err := Reserve(Name{}, "no such interface", "nor this"); fi.ErrnoOf(err) != fi.EADDRNOTAVAIL {
		t.Errorf("interfaces that are not there: %v", err)
	}
}
