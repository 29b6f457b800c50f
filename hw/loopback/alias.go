package loopback

import (
	"encoding/binary"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/hot"
)

// An interface whose socket is bound to a wildcard address answers at every
// address of the host. It has one address by which it is known: peers see that
// in its header and in its attach entries. Its file has a second name, that of
// the wildcard, under which peers find it that know another address.

// Families is a set of address families.
type Families uint32

// Address families.
const (
	IPv4 Families = hot.SegAnyIPv4
	IPv6 Families = hot.SegAnyIPv6
)

const allFamilies = IPv4 | IPv6

// family is the address's.
func (a *sockaddr) family() Families {
	if a.n == sizeIPv4 {
		return IPv4
	}
	return IPv6
}

func (a *sockaddr) port() uint16 { return binary.BigEndian.Uint16(a.raw[2:]) }

// wildcard is 0.0.0.0 or [::] with a's port and number.
func (a *sockaddr) wildcard(f Families) (w sockaddr) {
	family := uint16(unix.AF_INET6)
	w.n, w.number = sizeIPv6, a.number
	if f == IPv4 {
		family, w.n = unix.AF_INET, sizeIPv4
	}
	binary.NativeEndian.PutUint16(w.raw[:], family)
	copy(w.raw[2:4], a.raw[2:4])
	return w
}

// answers reports whether an interface that is known as name, and answers at all
// addresses of the families all, is reached at a. Whether a is an address of
// this host is the caller's to know.
func answers(name *sockaddr, all Families, a *sockaddr) bool {
	return *name == *a || all&a.family() != 0 && name.port() == a.port() && name.number == a.number
}

// names are the names of the interface's file.
func (id *identity) names() []sockaddr {
	list := []sockaddr{id.name}
	f := id.all & IPv6
	if f == 0 {
		f = id.all
	}
	if w := id.name.wildcard(f); f != 0 && w != id.name {
		list = append(list, w)
	}
	return list
}

// lookups are the names under which the interface at a may be found, in the
// order in which to try them. One that is bound to [::] may answer over IPv4.
func (a *sockaddr) lookups() []sockaddr {
	list := []sockaddr{*a}
	for _, f := range []Families{IPv4, IPv6} {
		if w := a.wildcard(f); f >= a.family() && w != *a {
			list = append(list, w)
		}
	}
	return list
}

// paths are where the file of an identity is found, its own name first.
func (id *identity) paths(dir string) []string {
	var list []string
	for _, n := range id.names() {
		list = append(list, filepath.Join(dir, fileName(id.user, id.netns, &n)))
	}
	if id.across {
		list = append(list, filepath.Join(dir, fileName(id.user, anyNetNS, &id.name)))
	}
	return list
}

// anyNetNS stands in names of files that are found from every network namespace.
const anyNetNS = 0

// place is a name under which a file may be found.
type place struct {
	netns uint64 // or anyNetNS
	as    sockaddr
}

func (p place) path(h *host) string {
	return filepath.Join(h.dir, fileName(h.user, p.netns, &p.as))
}

// exact are the places of the file of the interface that is known as a.
func (h *host) exact(a sockaddr) []place {
	list := []place{{h.netns, a}}
	if h.across {
		list = append(list, place{anyNetNS, a})
	}
	return list
}

// places are where the interface at a may be, in the order in which they are tried.
// What answers at all addresses of this network namespace answers at no other's.
func (h *host) places(a sockaddr) []place {
	var list []place
	if h.here == nil || !h.across || h.here(a.ip()) {
		for _, as := range a.lookups() {
			list = append(list, place{h.netns, as})
		}
	}
	if h.across {
		list = append(list, place{anyNetNS, a})
	}
	return list
}
