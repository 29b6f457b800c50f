package peers

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/names"
)

// Reported are the addresses of identities, as completions report them: what an address vector has, kept until it
// changes. The zero value has none. The holder of the progress lease calls the methods.
type Reported struct {
	addrs []fi.Addr // by slot: an address plus firstAddr, unknown or none
	seen  uint64    // generation of the address vector that addrs is of
	links uint64    // Directory.Links that none is of
}

// ReservedAddrs is how many of the highest addresses no address vector has.
const ReservedAddrs = 2

// Values of Reported.addrs below those of addresses.
const (
	unknown   = 0 // to be found
	none      = 1 // not in the address vector
	firstAddr = ReservedAddrs
)

// Directory is an address vector, as the addresses of identities are found there.
type Directory interface {
	// Links counts the links that were made: an identity without an address may be an alias that one of them names.
	Links() uint64
	// Search returns the address of an identity, fi.AddrNotAvail: it has none.
	Search(id uint32) fi.Addr
}

// Of returns the address of an identity by an address vector of a generation; fi.AddrNotAvail: it has none.
func (t *Reported) Of(id uint32, generation uint64, d Directory) fi.Addr {
	if generation != t.seen {
		t.seen = generation
		clear(t.addrs)
	}
	slot := Slot(id)
	for slot >= len(t.addrs) {
		t.addrs = append(t.addrs, unknown)
	}
	if a := t.addrs[slot]; a >= firstAddr {
		return a - firstAddr
	}
	return t.find(id, d)
}

// find finds an address that is not kept.
func (t *Reported) find(id uint32, d Directory) fi.Addr {
	slot, links := Slot(id), d.Links()
	if t.addrs[slot] == none && links == t.links {
		return fi.AddrNotAvail
	}
	if links != t.links {
		t.links = links // those that had none may have one now
		for i := range t.addrs {
			if t.addrs[i] == none {
				t.addrs[i] = unknown
			}
		}
	}
	a := d.Search(id)
	if a == fi.AddrNotAvail {
		t.addrs[slot] = none
	} else {
		t.addrs[slot] = a + firstAddr
	}
	return a
}

// Drop has the address of the identity at a place be found anew.
func (t *Reported) Drop(slot int) {
	if slot < len(t.addrs) {
		t.addrs[slot] = unknown
	}
}

// Book is what a peer is called.
type Book interface {
	// Find returns the address of a name, fi.AddrNotAvail: it has none.
	Find(n names.Name) fi.Addr
	// Aliases returns names by which peers at a port are known besides, under an authorisation key: those that
	// transmits have named, and addresses of this host. Names of other ports among them are passed over.
	Aliases(port uint16, key uint8) []names.Name
}

// AddressOf finds an identity's name in an address vector, then its aliases: those that receives have named, and those
// of the book. Of the addresses that only a loopback interface's network stands for, such as 127.0.0.2, it knows those
// that were named.
func (t *Identities[O]) AddressOf(id uint32, book Book) fi.Addr {
	own := t.Name(id)
	if a := book.Find(own); a != fi.AddrNotAvail {
		return a
	}
	if !t.Reaches(id, names.Any(names.AFInet, own.Port).WithKey(own.Key)) &&
		!t.Reaches(id, names.Any(names.AFInet6, own.Port).WithKey(own.Key)) {
		return fi.AddrNotAvail // it has no aliases
	}
	for _, n := range append(t.AtPort(own.Port), book.Aliases(own.Port, own.Key)...) {
		if n.Port == own.Port && t.Reaches(id, n) {
			if a := book.Find(n); a != fi.AddrNotAvail {
				return a
			}
		}
	}
	return fi.AddrNotAvail
}
