package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/region"
	"github.com/weft-fabric/weft/provider/names"
)

// Which peers reach a region, by authorisation keys: access and accessFor are what every access of a peer to a region
// passes. auth.go has the rules.

// peerRegion is a region as accesses of peers find it.
type peerRegion = region.Region[MR]

// newScope makes the scope of a region from its attributes, nil where keys are not in address vectors, or the region is
// reached by all keys of the endpoint that it will be bound to (Domain.Matches). The errors wrap fi.EOPNOTSUPP for one
// address or key there, and fi.EINVAL: no keys (fi_mr_reg, fi_mr_regv), or those of region.NewScope.
func (d *Domain) newScope(a *fi.MRAttr, flags uint64) (*region.Scope, error) {
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
			"with FI_AV_AUTH_KEY a region needs an address vector of the domain in a struct fi_mr_auth_key: %w",
			fi.EINVAL)
	}
	return region.NewScope(av, a.Src, flags&fi.AuthKey != 0, directed)
}

// access finds the region of a key and enters its gate (region.Table.Access), for a source of this endpoint. Errors as
// there, and fi.EACCES for a region that the source does not reach. Without an error the caller leaves the gate.
func (e *leasedEP) access(src hw.Source, key, addr, n, rights uint64) (m *peerRegion, offset uint64, err error) {
	m, offset, err = e.ep.base.domain.regions.Access(key, addr, n, rights)
	if err == nil && !e.reaches(m, src) {
		m.Gate.Leave()
		return nil, 0, fi.EACCES
	}
	return m, offset, err
}

// reaches reports whether a source of this endpoint reaches a region.
func (e *leasedEP) reaches(m *peerRegion, src hw.Source) bool {
	var peer names.Name
	if m.Scope != nil {
		peer = e.rx.ids.Name(e.senderOf(src).ID)
	}
	return m.Opens(e.ep.base.auth, e.ep.base.keys, peer, &e.rx.ids)
}

// accessFor is access for the peer that a link leads to.
func (e *leasedEP) accessFor(l *link, key, addr, n, rights uint64) (m *peerRegion, offset uint64, err error) {
	m, offset, err = e.ep.base.domain.regions.Access(key, addr, n, rights)
	if err == nil && !m.Opens(e.ep.base.auth, e.ep.base.keys, l.To.Name, &e.rx.ids) {
		m.Gate.Leave()
		return nil, 0, fi.EACCES
	}
	return m, offset, err
}
