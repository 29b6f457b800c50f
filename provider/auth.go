package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/authkey"
)

// Authorisation keys. An endpoint's is that of its attributes, else the
// domain's; a region's likewise. Endpoints with different keys do not reach each
// other: on this host the transport compares proofs before it connects, and
// between hosts it authenticates and encrypts every packet. A region with a
// key is open to peers through endpoints with the same key only.
//
// What peers reach without a message, and what C serves, are the domain's
// regions with the domain's key, through endpoints with that key. All else goes
// as messages, and [Endpoint.access] compares. So does all that peers do where
// keys are in address vectors (avkeys.go). RDMA devices cannot
// authenticate, so an endpoint with a key does not use one.

// keyLimit is how many keys an address vector may have.
func (d *Domain) keyLimit() int {
	limit := uint64(info.MaxEPAuthKey)
	if d.Matches() {
		limit = info.MatchedAuthKeys
	}
	if n := d.info.Domain.MaxEPAuthKey; n != 0 && n < limit {
		return int(n)
	}
	return int(limit)
}

// domainKey checks the key of a domain that is opened. The error wraps fi.EINVAL.
func domainKey(a *fi.DomainAttr) (authkey.Key, error) {
	if a.AuthKeySize != fi.AVAuthKey {
		return authkey.New(a.AuthKey, a.AuthKeySize, "")
	}
	if a.AuthKey != nil {
		return "", fmt.Errorf("a key with FI_AV_AUTH_KEY: %w", fi.EINVAL)
	}
	return "", nil
}

// endpointKey checks the key of an endpoint. The error wraps fi.EINVAL.
func (d *Domain) endpointKey(a *fi.EPAttr) (authkey.Key, error) {
	if d.Keyed() && (len(a.AuthKey) != 0 || a.AuthKeySize != 0 || a.Type == fi.EPMsg) {
		return "", fmt.Errorf(
			"an endpoint with a key of its own, or a connected one, in a domain with FI_AV_AUTH_KEY: %w", fi.EINVAL)
	}
	return authkey.New(a.AuthKey, a.AuthKeySize, d.auth)
}

// defaults complete the attributes of the domain's endpoints.
func (d *Domain) defaults() *info.Defaults {
	inject := uint64(d.cfg.InjectSize)
	if d.Matches() && d.info.Tx != nil {
		inject = d.info.Tx.InjectSize // the device's limit
	}
	return &info.Defaults{Own: d.info, Format: d.format, Inject: inject, Config: d.cfg}
}

// complete completes the attributes of an endpoint, its authorisation key included. The error, which is in the log,
// wraps fi.EINVAL.
func (d *Domain) complete(given *fi.Info) (*fi.Info, error) {
	full, err := d.defaults().Complete(given)
	if err != nil {
		return nil, refuse(log.EPCtrl, fi.EINVAL, "open endpoint: %v", err)
	}
	auth, err := d.endpointKey(full.EP)
	if err != nil {
		return nil, refuse(log.EPCtrl, fi.EINVAL, "open endpoint: %v", err)
	}
	full.EP.AuthKey, full.EP.AuthKeySize = auth.Bytes(), uint64(len(auth))
	return full, nil
}

// holdAuthKeys gives an endpoint that is about to be enabled the keys of its address
// vector, if they are there. The error wraps fi.EINVAL.
func (e *peering) holdAuthKeys() (err error) {
	if !e.domain.Keyed() {
		return nil
	}
	if r := e.bound.srx; r != nil && r.rx.hasOtherKeys(e.bound.av) {
		return fmt.Errorf(
			"another address vector with keys than that of the endpoints it shares receives with: %w", fi.EINVAL)
	}
	e.keys, err = e.bound.av.HoldKeys(0)
	return err
}

// hasOtherKeys reports whether the context's endpoints have another address vector, in
// which numbers mean other keys.
func (r *rxContext) hasOtherKeys(a *AV) bool {
	l := r.acquire()
	defer l.give()
	return l.av != nil && l.av != a
}

// dropAuthKeys undoes holdAuthKeys.
func (e *peering) dropAuthKeys() {
	if e.keys != nil {
		e.bound.av.DropKeys(e.keys)
		e.keys = nil
	}
}
