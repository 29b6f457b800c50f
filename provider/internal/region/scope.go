package region

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/names"
)

// Scope is which peers reach a region of a domain that has its keys in address vectors (FI_AV_AUTH_KEY): those that
// have one of the region's keys, or one peer only. Immutable.
type Scope struct {
	addrs Addresses
	keys  []hw.Key   // the region's, of addrs; counted as used until End
	peer  names.Name // the only one that reaches the region; zero: all that have one of the keys do
}

// Addresses is an address vector with keys.
type Addresses interface {
	// Acquire keeps it open until Release.
	Acquire() error
	Release()
	// KeyNumber is the number of a key, 0 if handle is none.
	KeyNumber(handle fi.Addr) uint8
	// Name is the name of an address, with the number of its key.
	Name(addr fi.Addr) (names.Name, bool)
	// HoldKeys returns the key of a number, or with 0 all keys, which are kept until DropKeys. Errors wrap fi.EINVAL.
	HoldKeys(only uint8) ([]hw.Key, error)
	DropKeys(list []hw.Key)
}

// Identities know peers by their names.
type Identities interface {
	// Of is the identity of a name.
	Of(n names.Name) uint32
}

// NewScope makes the scope of a region that is for all keys of an address vector, for the key src with byKey, and else
// for one address with src, if that is given. The last two take the domain's FI_DIRECTED_RECV, without which byKey is
// refused and an address not read. The errors wrap fi.EINVAL: an address vector without keys, and an address or key
// that is not there; or are those of Acquire.
func NewScope(addrs Addresses, src fi.Addr, byKey, directed bool) (*Scope, error) {
	s := &Scope{addrs: addrs}
	only := uint8(0)
	switch {
	case byKey:
		only = addrs.KeyNumber(src)
		if only == 0 || !directed {
			return nil, fmt.Errorf(
				"FI_AUTH_KEY with %#x, which is no key, or without FI_DIRECTED_RECV: %w", src, fi.EINVAL)
		}
	case directed && src != fi.AddrUnspec:
		n, ok := addrs.Name(src)
		if !ok {
			return nil, fmt.Errorf("address %#x is not in the address vector: %w", src, fi.EINVAL)
		}
		s.peer, only = n, n.Key
	}
	if err := addrs.Acquire(); err != nil {
		return nil, err
	}
	var err error
	if s.keys, err = addrs.HoldKeys(only); err != nil {
		addrs.Release()
		return nil, err
	}
	return s, nil
}

// End gives back what the scope holds. A nil scope holds nothing.
func (s *Scope) End() {
	if s != nil {
		s.addrs.DropKeys(s.keys)
		s.addrs.Release()
	}
}

// admits reports whether a key is one of the region's.
func (s *Scope) admits(k authkey.Key) bool {
	for _, own := range s.keys {
		if authkey.Key(own.Secret) == k {
			return true
		}
	}
	return false
}

// of returns those of an endpoint's keys that are the region's.
func (s *Scope) of(own []hw.Key) (keys [][]byte) {
	for _, k := range own {
		if s.admits(authkey.Key(k.Secret)) {
			keys = append(keys, k.Secret)
		}
	}
	return keys
}

// opens reports whether a peer reaches the region, as Region.Opens has it.
func (s *Scope) opens(own []hw.Key, peer names.Name, ids Identities) bool {
	for _, k := range own {
		if k.Number == peer.Key && !s.admits(authkey.Key(k.Secret)) {
			return false
		}
	}
	// The number of the key is of the endpoint's address vector, which may be another than the region's.
	return s.peer.IsZero() || ids.Of(s.peer.WithKey(peer.Key)) == ids.Of(peer)
}
