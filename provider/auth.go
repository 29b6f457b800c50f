package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/info"
)

// Authorisation keys. An endpoint's is that of its attributes, else the
// domain's; a region's likewise. Endpoints with different keys do not reach each
// other: on this host the transport compares proofs before it connects, and
// between hosts it authenticates and encrypts every packet. A region with a
// key is open to peers through endpoints with the same key only.
//
// What peers reach without a message, and what C serves, are the domain's
// regions with the domain's key, through endpoints with that key. All else goes
// as messages, and [Endpoint.access] compares. RDMA devices cannot
// authenticate, so an endpoint with a key does not use one.

// authKey is an authorisation key, "" for none. A string, because strings are
// compared.
type authKey string

// newAuthKey checks a key that attributes have beside a size, and returns it, or
// the default one if there is none. The error wraps fi.EINVAL for a size without
// a key or beyond the limit, fi.AVAuthKey included.
func newAuthKey(key []byte, size uint64, otherwise authKey) (authKey, error) {
	switch size = max(size, uint64(len(key))); {
	case size == 0:
		return otherwise, nil
	case size != uint64(len(key)) || size > info.MaxAuthKey:
		return "", fmt.Errorf("an authorisation key of %d bytes, of which %d are there, at most %d: %w", size, len(key), info.MaxAuthKey, fi.EINVAL)
	}
	return authKey(key), nil
}

// bytes is the key as transports take it, nil for none.
func (k authKey) bytes() []byte {
	if k == "" {
		return nil
	}
	return []byte(k)
}

// opens tells whether peers reach the region through endpoints with a key.
func (m *MR) opens(k authKey) bool { return m.auth == "" || m.auth == k }

// access is the domain's, for peers of this endpoint: fi.EACCES also for a
// region with another authorisation key.
func (e *Endpoint) access(key, addr, n, rights uint64) (m *MR, offset uint64, err error) {
	m, offset, err = e.domain.access(key, addr, n, rights)
	if err == nil && !m.opens(e.auth) {
		m.gate.leave()
		return nil, 0, fi.EACCES
	}
	return m, offset, err
}
