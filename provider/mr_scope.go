package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/authkey"
	"github.com/weft-fabric/weft/provider/names"
)

// Which peers reach a region, by authorisation keys: access and accessFor are what every access of a peer to a region
// passes. auth.go has the rules.

// mrScope is which peers reach a region of a domain that has its keys in address vectors (FI_AV_AUTH_KEY): those that
// have one of the region's keys, or one peer only. Immutable.
type mrScope struct {
	av   *AV
	keys []hw.Key // the region's keys, of av; counted as used until end
	// peer is the only one that reaches the region; zero: all that have one of the keys do.
	peer names.Name
}

// newScope makes the scope of a region from its attributes, nil where keys are not in
// address vectors, or the region is reached by all keys of the endpoint that it will be bound to (Domain.Matches). The
// errors wrap fi.EOPNOTSUPP for one address or key there, and fi.EINVAL: no keys (fi_mr_reg, fi_mr_regv, an
// address vector without any), an address or key that is not there, and with
// fi.AuthKey a domain without fi.DirectedRecv.
func (d *Domain) newScope(a *fi.MRAttr, flags uint64) (*mrScope, error) {
	directed := (d.info.Caps|d.info.Domain.Caps)&fi.DirectedRecv != 0
	switch {
	case !d.Keyed():
		return nil, nil
	case d.Matches() && (flags&fi.AuthKey != 0 || a.AV != nil && directed && a.Src != fi.AddrUnspec):
		return nil, fmt.Errorf("a region for %#x alone: devices that match admit all of an endpoint's keys: %w", a.Src,
			fi.EOPNOTSUPP)
	case d.Matches(): // its endpoint's keys are in an address vector
		return nil, nil
	}
	av, _ := a.AV.(*AV)
	if av == nil || av.Owner() != d {
		return nil, fmt.Errorf(
			"with FI_AV_AUTH_KEY a region needs an address vector of the domain in a struct fi_mr_auth_key: %w", fi.EINVAL)
	}
	s := &mrScope{av: av}
	only := uint8(0)
	switch {
	case flags&fi.AuthKey != 0:
		only = av.KeyNumber(a.Src)
		if only == 0 || !directed {
			return nil, fmt.Errorf(
				"FI_AUTH_KEY with %#x, which is no key, or without FI_DIRECTED_RECV: %w", a.Src, fi.EINVAL)
		}
	case directed && a.Src != fi.AddrUnspec:
		n, ok := av.Name(a.Src)
		if !ok {
			return nil, fmt.Errorf("address %#x is not in the address vector: %w", a.Src, fi.EINVAL)
		}
		s.peer, only = n, n.Key
	}
	if err := av.Acquire(); err != nil {
		return nil, err
	}
	var err error
	if s.keys, err = av.HoldKeys(only); err != nil {
		av.Release()
		return nil, err
	}
	return s, nil
}

// end gives back what the scope holds. A nil scope holds nothing.
func (s *mrScope) end() {
	if s != nil {
		s.av.DropKeys(s.keys)
		s.av.Release()
	}
}

// admits reports whether a key is one of the region's.
func (s *mrScope) admits(k authkey.Key) bool {
	for _, own := range s.keys {
		if authkey.Key(own.Secret) == k {
			return true
		}
	}
	return false
}

// opens reports whether a peer of an endpoint reaches the region: without a scope through an endpoint with the region's
// key, with one under a key of the region, and if the scope names a peer it must be that one. peer is not read
// without a scope.
func (m *MR) opens(e *leasedEP, peer names.Name) bool {
	if m.scope == nil {
		return m.auth == "" || m.auth == e.auth
	}
	for _, k := range e.keys {
		if k.Number == peer.Key && !m.scope.admits(authkey.Key(k.Secret)) {
			return false
		}
	}
	// The number of the key is e.av's, which may be another than the region's.
	return m.scope.peer.IsZero() || e.rx.ids.Of(m.scope.peer.WithKey(peer.Key)) == e.rx.ids.Of(peer)
}

// access is Domain.access, which finds the region of a key and enters its gate, for a source of this endpoint. Errors
// as there, and fi.EACCES for a region that the source does not reach. Without an error the caller leaves the gate.
func (e *leasedEP) access(src hw.Source, key, addr, n, rights uint64) (m *MR, offset uint64, err error) {
	m, offset, err = e.domain.access(key, addr, n, rights)
	if err == nil && !e.reaches(m, src) {
		m.gate.Leave()
		return nil, 0, fi.EACCES
	}
	return m, offset, err
}

// reaches reports whether a source of this endpoint reaches a region.
func (e *leasedEP) reaches(m *MR, src hw.Source) bool {
	if m.scope == nil {
		return m.opens(e, names.Name{})
	}
	return m.opens(e, e.rx.ids.Name(e.senderOf(src).id))
}

// accessFor is access for the peer that a link leads to.
func (e *leasedEP) accessFor(l *link, key, addr, n, rights uint64) (m *MR, offset uint64, err error) {
	m, offset, err = e.domain.access(key, addr, n, rights)
	if err == nil && !m.opens(e, l.to.Name) {
		m.gate.Leave()
		return nil, 0, fi.EACCES
	}
	return m, offset, err
}

// access finds the region of a key and enters it for a range and rights of
// which the caller is to have all. The caller leaves m.gate afterwards.
// Errors: fi.ENOKEY for an unknown or closed key, fi.EACCES when the rights or
// the range are not the region's.
func (d *Domain) access(key, addr, n, rights uint64) (m *MR, offset uint64, err error) {
	m = d.regions.keys.Find(key)
	if m == nil || !m.gate.Enter() {
		return nil, 0, fi.ENOKEY
	}
	offset = addr - m.base
	if m.access&rights != rights || offset > m.length || n > m.length-offset {
		m.gate.Leave()
		return nil, 0, fi.EACCES
	}
	return m, offset, nil
}

// window appends the pieces of the region from offset to offset+n, which lie
// in it.
func (m *MR) window(to []fi.IOVec, offset, n uint64) []fi.IOVec {
	return window(to, m.parts, offset, n)
}
