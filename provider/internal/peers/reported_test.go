package peers

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/names"
)

// directory finds addresses by identity, and counts the searches.
type directory struct {
	addrs    map[uint32]fi.Addr
	links    uint64
	searches int
}

func (d *directory) Links() uint64 { return d.links }

func (d *directory) Search(id uint32) fi.Addr {
	d.searches++
	if a, ok := d.addrs[id]; ok {
		return a
	}
	return fi.AddrNotAvail
}

// TestReported: an address is searched for once, and again when the address vector, the identity's names or, where
// there is none, the links have changed.
func TestReported(t *testing.T) {
	const highest = fi.Addr(1<<64 - 1 - ReservedAddrs)
	var r Reported
	d := &directory{addrs: map[uint32]fi.Addr{1: 0, 3: highest}}
	for i, c := range []struct {
		change     func()
		id         uint32
		generation uint64
		want       fi.Addr
		searched   bool
	}{
		{nil, 1, 0, 0, true},
		{nil, 1, 0, 0, false},
		{nil, 3, 0, highest, true},
		{nil, 3, 0, highest, false},
		{nil, 2, 0, fi.AddrNotAvail, true},
		{nil, 2, 0, fi.AddrNotAvail, false},
		{func() { d.links++ }, 1, 0, 0, false},
		{nil, 2, 0, fi.AddrNotAvail, true},
		{nil, 2, 0, fi.AddrNotAvail, false},
		{func() { d.links, d.addrs[2] = d.links+1, 8 }, 2, 0, 8, true},
		{func() { d.addrs[1] = 9 }, 1, 0, 0, false},
		{func() { r.Drop(0) }, 1, 0, 9, true},
		{func() { d.addrs[1] = 10 }, 1, 1, 10, true},
		{func() { r.Drop(77) }, 2, 1, 8, true},
		{nil, 1 | 5<<24, 1, 10, false}, // the same place, under a key
	} {
		if c.change != nil {
			c.change()
		}
		d.searches = 0
		if a := r.Of(c.id, c.generation, d); a != c.want || d.searches != map[bool]int{true: 1}[c.searched] {
			t.Errorf("step %d: %#x, want %#x, %d searches", i, a, c.want, d.searches)
		}
	}
}

// book has addresses of names, and aliases.
type book struct {
	addrs   map[names.Name]fi.Addr
	aliases []names.Name
}

func (b *book) Find(n names.Name) fi.Addr {
	if a, ok := b.addrs[n]; ok {
		return a
	}
	return fi.AddrNotAvail
}

func (b *book) Aliases(uint16, uint8) []names.Name { return b.aliases }

// TestAddressOf finds a peer by its own name, by an alias that a receive has named, and by one of the book; not by
// names that do not lead to it, and not one that has no aliases.
func TestAddressOf(t *testing.T) {
	s := newTable()
	wild := origin{number: 1, port: 7, every: true, own: nameAt("10.0.0.1", 7)}
	plain := origin{number: 2, own: nameAt("10.0.0.2", 8)}
	one, two := s.meet(wild), s.meet(plain)
	named := nameAt("10.0.0.3", 7)
	if s.Of(named) != one {
		t.Fatal("a name that leads to a peer is another's")
	}
	for what, c := range map[string]struct {
		id   uint32
		name names.Name
		want fi.Addr
	}{
		"its own":                  {one, wild.own, 5},
		"named by a receive":       {one, named, 5},
		"an alias of the book":     {one, nameAt("10.0.0.4", 7), 5},
		"of another port":          {one, nameAt("10.0.0.5", 8), fi.AddrNotAvail},
		"not known":                {one, nameAt("10.0.0.6", 7), fi.AddrNotAvail},
		"its own, without aliases": {two, plain.own, 5},
		"an alias of the other":    {two, nameAt("10.0.0.5", 8), fi.AddrNotAvail},
	} {
		b := &book{map[names.Name]fi.Addr{c.name: 5}, []names.Name{nameAt("10.0.0.4", 7), nameAt("10.0.0.5", 8)}}
		if a := s.AddressOf(c.id, b); a != c.want {
			t.Errorf("%s: %#x, want %#x", what, a, c.want)
		}
	}
}

// anywhere is an interface to which all names lead.
type anywhere struct{}

func (anywhere) Reaches(names.Name) bool { return true }

// TestAddressOfPort: an alias has the port of the peer, whatever the transport says of others.
func TestAddressOfPort(t *testing.T) {
	s := Identities[anywhere]{Changed: func(int) {}, Stale: func() {}}
	id := s.Meet(anywhere{}, nameAt("10.0.0.1", 7), func(uint32, uint32) {})
	for port, want := range map[uint16]fi.Addr{7: 5, 8: fi.AddrNotAvail} {
		n := nameAt("10.0.0.4", port)
		if a := s.AddressOf(id, &book{map[names.Name]fi.Addr{n: 5}, []names.Name{n}}); a != want {
			t.Errorf("port %d: %#x, want %#x", port, a, want)
		}
	}
}
