package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/names"
)

// mrScope says which peers reach a region where authorisation keys are in address
// vectors: those that have one of its keys, or one of them only. Immutable.
type mrScope struct {
	av   *AV
	held []hw.Key // of av
	// peer is the only one that reaches the region, zero: there are others.
	peer names.Name
}

// newScope makes the scope of a region from its attributes, nil where keys are not in
// address vectors. The errors wrap fi.EINVAL: no keys (fi_mr_reg, fi_mr_regv, an
// address vector without any), an address or key that is not there, and with
// fi.AuthKey a domain without fi.DirectedRecv.
func (d *Domain) newScope(a *fi.MRAttr, flags uint64) (*mrScope, error) {
	if !d.Keyed() {
		return nil, nil
	}
	av, _ := a.AV.(*AV)
	if av == nil || av.domain != d {
		return nil, fmt.Errorf("with FI_AV_AUTH_KEY a region needs an address vector of the domain in a struct fi_mr_auth_key: %w", fi.EINVAL)
	}
	directed := (d.info.Caps|d.info.Domain.Caps)&fi.DirectedRecv != 0
	s := &mrScope{av: av}
	only := uint8(0)
	switch {
	case flags&fi.AuthKey != 0:
		av.addrs.Lock()
		only = av.keyNumber(a.Src)
		av.addrs.Unlock()
		if only == 0 || !directed {
			return nil, fmt.Errorf("FI_AUTH_KEY with %#x, which is no key, or without FI_DIRECTED_RECV: %w", a.Src, fi.EINVAL)
		}
	case directed && a.Src != fi.AddrUnspec:
		n, ok := av.Name(a.Src)
		if !ok {
			return nil, fmt.Errorf("address %#x is not in the address vector: %w", a.Src, fi.EINVAL)
		}
		s.peer, only = n, n.Key
	}
	if err := av.refs.acquire(); err != nil {
		return nil, err
	}
	var err error
	if s.held, err = av.holdKeys(only); err != nil {
		av.refs.release()
		return nil, err
	}
	return s, nil
}

// end gives back what the scope holds. A nil scope holds nothing.
func (s *mrScope) end() {
	if s != nil {
		s.av.dropKeys(s.held)
		s.av.refs.release()
	}
}

// admits reports whether the region is open to who has a key.
func (s *mrScope) admits(k authKey) bool {
	for _, own := range s.held {
		if authKey(own.Secret) == k {
			return true
		}
	}
	return false
}

// opens reports whether a peer of an endpoint reaches the region.
func (m *MR) opens(e *Endpoint, peer names.Name) bool {
	if m.scope == nil {
		return m.auth == "" || m.auth == e.auth
	}
	for _, k := range e.keys {
		if k.Number == peer.Key && !m.scope.admits(authKey(k.Secret)) {
			return false
		}
	}
	// The number of the key is e.av's, which may be another than the region's.
	return m.scope.peer.IsZero() || e.rx.identity(m.scope.peer.WithKey(peer.Key)) == e.rx.identity(peer)
}

// access is the domain's, for a source of this endpoint: fi.EACCES also for a
// region that is not open to it.
func (e *Endpoint) access(src hw.Source, key, addr, n, rights uint64) (m *MR, offset uint64, err error) {
	m, offset, err = e.domain.access(key, addr, n, rights)
	if err == nil && !e.reaches(m, src) {
		m.gate.leave()
		return nil, 0, fi.EACCES
	}
	return m, offset, err
}

// reaches reports whether a source of this endpoint reaches a region.
func (e *Endpoint) reaches(m *MR, src hw.Source) bool {
	if m.scope == nil {
		return m.opens(e, names.Name{})
	}
	return m.opens(e, e.rx.idNames[idSlot(e.senderOf(src).id)])
}

// accessFor is access for the peer that a link leads to.
func (e *Endpoint) accessFor(l *link, key, addr, n, rights uint64) (m *MR, offset uint64, err error) {
	m, offset, err = e.domain.access(key, addr, n, rights)
	if err == nil && !m.opens(e, l.to.Name) {
		m.gate.leave()
		return nil, 0, fi.EACCES
	}
	return m, offset, err
}
