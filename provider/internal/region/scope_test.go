package region

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/names"
)

// nameAt is a name under a key.
func nameAt(port uint16, key uint8) names.Name {
	return names.New(netip.MustParseAddr("10.0.0.1"), port).WithKey(key)
}

// vector is an address vector: its keys have handles from 100 on, its addresses are ports under keys.
type vector struct {
	keys  []hw.Key
	addrs []names.Name
	full  bool // no key can be kept
	shut  bool
	open  int // times Acquire, less Release
	kept  int // keys
}

func (v *vector) Acquire() error {
	if v.shut {
		return fi.EBADF
	}
	v.open++
	return nil
}

func (v *vector) Release() { v.open-- }

func (v *vector) KeyNumber(handle fi.Addr) uint8 {
	if n := int(handle) - 100; n >= 0 && n < len(v.keys) {
		return v.keys[n].Number
	}
	return 0
}

func (v *vector) Name(addr fi.Addr) (names.Name, bool) {
	if addr >= fi.Addr(len(v.addrs)) {
		return names.Name{}, false
	}
	return v.addrs[addr], true
}

func (v *vector) HoldKeys(only uint8) (list []hw.Key, err error) {
	for _, k := range v.keys {
		if only == 0 || k.Number == only {
			list = append(list, k)
		}
	}
	if v.full || len(list) == 0 {
		return nil, fi.EINVAL
	}
	v.kept += len(list)
	return list, nil
}

func (v *vector) DropKeys(list []hw.Key) { v.kept -= len(list) }

// ids gives each name but for its key an identity under the key.
type ids struct{}

func (ids) Of(n names.Name) uint32 { return uint32(n.Port)<<8 | uint32(n.Key) }

func key(number uint8, secret string) hw.Key { return hw.Key{Number: number, Secret: []byte(secret)} }

func newVector() *vector {
	return &vector{keys: []hw.Key{key(1, "one"), key(2, "two")}, addrs: []names.Name{nameAt(7, 1), nameAt(8, 2)}}
}

// TestScopes: which attributes make which scope, that it holds its address vector and keys until its end, and that
// nothing is kept of one that is refused.
func TestScopes(t *testing.T) {
	for _, c := range []struct {
		what            string
		src             fi.Addr
		byKey, directed bool
		full, shut      bool
		keys            int
		want            error
	}{
		{what: "all keys", src: fi.AddrUnspec, keys: 2},
		{what: "all keys, directed", src: fi.AddrUnspec, directed: true, keys: 2},
		{what: "an address that is not read", src: 9, keys: 2},
		{what: "an address", src: 1, directed: true, keys: 1},
		{what: "an address that is not there", src: 9, directed: true, want: fi.EINVAL},
		{what: "a key", src: 101, byKey: true, directed: true, keys: 1},
		{what: "a key, not directed", src: 101, byKey: true, want: fi.EINVAL},
		{what: "a key that is not there", src: 102, byKey: true, directed: true, want: fi.EINVAL},
		{what: "no keys", src: fi.AddrUnspec, full: true, want: fi.EINVAL},
		{what: "a closed address vector", src: fi.AddrUnspec, shut: true, want: fi.EBADF},
	} {
		v := newVector()
		v.full, v.shut = c.full, c.shut
		s, err := NewScope(v, c.src, c.byKey, c.directed)
		if c.want != nil {
			if !errors.Is(err, c.want) || v.open != 0 || v.kept != 0 {
				t.Errorf("%s: %v, %d times open, %d keys are kept", c.what, err, v.open, v.kept)
			}
			continue
		}
		if err != nil || v.open != 1 || v.kept != c.keys {
			t.Errorf("%s: %v, %d times open, %d keys are kept", c.what, err, v.open, v.kept)
			continue
		}
		if s.End(); v.open != 0 || v.kept != 0 {
			t.Errorf("%s: %d times open, %d keys are kept after the end", c.what, v.open, v.kept)
		}
	}
	(*Scope)(nil).End()
}

// TestOpens: a region without a scope is open to endpoints with its key, and one with a scope to peers under keys with
// the same secret, whatever their numbers, or to one of them.
func TestOpens(t *testing.T) {
	scope := func(src fi.Addr, byKey bool) *Scope {
		s, err := NewScope(newVector(), src, byKey, true)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	own := []hw.Key{key(5, "one"), key(6, "two"), key(7, "three")} // of another address vector
	for _, c := range []struct {
		what string
		r    *Region[owner]
		auth authkey.Key
		peer names.Name
		want bool
	}{
		{"no key", &Region[owner]{}, "a", names.Name{}, true},
		{"its key", &Region[owner]{Auth: "a"}, "a", names.Name{}, true},
		{"another key", &Region[owner]{Auth: "a"}, "b", names.Name{}, false},
		{"all keys, the first", &Region[owner]{Scope: scope(fi.AddrUnspec, false)}, "", nameAt(9, 5), true},
		{"all keys, the second", &Region[owner]{Scope: scope(fi.AddrUnspec, false)}, "", nameAt(9, 6), true},
		{"all keys, none of them", &Region[owner]{Scope: scope(fi.AddrUnspec, false)}, "", nameAt(9, 7), false},
		{"a key", &Region[owner]{Scope: scope(101, true)}, "", nameAt(9, 6), true},
		{"another than the key", &Region[owner]{Scope: scope(101, true)}, "", nameAt(9, 5), false},
		{"an address", &Region[owner]{Scope: scope(0, false)}, "", nameAt(7, 5), true},
		{"an address under another key", &Region[owner]{Scope: scope(0, false)}, "", nameAt(7, 6), false},
		{"another address", &Region[owner]{Scope: scope(0, false)}, "", nameAt(8, 5), false},
	} {
		if got := c.r.Opens(c.auth, own, c.peer, ids{}); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	if r := (&Region[owner]{Auth: "a"}); !r.OpenToAll("a") || r.OpenToAll("") {
		t.Error("open to all by the domain's key")
	}
	if r := (&Region[owner]{Auth: "a", Scope: scope(0, false)}); r.OpenToAll("a") {
		t.Error("a region with a scope is open to all")
	}
}
