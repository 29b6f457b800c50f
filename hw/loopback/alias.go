package loopback

import (
	"encoding/binary"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hot"
)

// An interface whose socket is bound to a wildcard address answers at every
// address of the host. It has one address by which it is known: peers see that
// in its header and in its attach entries. Its file has a second name, that of
// the wildcard, under which it is found by those who know another address.

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

// answers tells whether an interface that is known as name, and answers at all
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
func (id *identity) paths(dir string, h *host) []string {
	var list []string
	for _, n := range id.names() {
		list = append(list, filepath.Join(dir, fileName(h.uid, h.netns, &n)))
	}
	return list
}
