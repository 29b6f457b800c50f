package info

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// What objects are opened with: applications change attributes that fi_getinfo has returned, and what it would refuse
// as a hint is refused there, too.

// opening is a query about attributes of an API version, 0: unknown.
func opening(cfg *config.Config, version uint32) *query {
	if cfg == nil {
		cfg = config.Default()
	}
	return &query{env: &Env{}, cfg: cfg, version: orDefault(version, fi.Version(1, 17)), alias: aliasOf(cfg.Name)}
}

// asError is what is refused when an object is opened. It wraps fi.EINVAL.
func asError(r *refusal) error {
	if r == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", r.attr, r.why, fi.EINVAL)
}

// CheckDomain reports what of a domain's attributes is not offered: models, sizes, counts, capabilities and
// registration modes. The error wraps fi.EINVAL. Domains of matched endpoints have their own limits: only models count.
func CheckDomain(cfg *config.Config, i *fi.Info) error {
	h := complete(i)
	q := opening(cfg, h.Fabric.APIVersion)
	r := firstRefusal(q.checkModels(*h.Domain), trafficClass("domain_attr.tclass", h.Domain.TClass))
	if r != nil || Matched(q.cfg, i) {
		return asError(r)
	}
	return asError(firstRefusal(q.checkMRMode(h.Domain.MRMode), q.checkCounts(*h.Domain, epTypes[0]),
		subset("domain_attr.caps", h.Domain.Caps, domainCaps)))
}

// CheckEndpoint reports what of an endpoint's attributes is not offered, as Complete of [Defaults] does for endpoints
// of a domain. The error wraps fi.EINVAL.
func CheckEndpoint(cfg *config.Config, i *fi.Info) error {
	return asError((&Defaults{Config: cfg}).checkEndpoint(i))
}

// checkEndpoint reports what of an endpoint's attributes is offered to no hints. What given leaves out passes.
func (d *Defaults) checkEndpoint(given *fi.Info) *refusal {
	h := complete(given)
	q := opening(d.Config, h.Fabric.APIVersion)
	kind := orDefault(h.EP.Type, fi.EPRDM)
	i := slices.IndexFunc(epTypes, func(t epType) bool { return t.EPType == kind })
	if i < 0 {
		return refuse("ep_attr.type", "value %v is not supported", kind)
	}
	t, tx := epTypes[i], *h.Tx
	if r := firstRefusal(subset("caps", h.Caps, t.caps), subset("tx_attr.caps", tx.Caps, allCaps)); r != nil {
		return r
	}
	tx.Caps = 0 // they are the application's choice
	_, rtx := q.negotiateTx(tx, h.Caps, false, t)
	_, rep := q.negotiateEP(*h.EP, &fi.DomainAttr{}, tx.MsgOrder|t.impliedOrder(h.EP, h.Caps), h.Caps, t)
	return firstRefusal(rtx, q.checkRx(*h.Rx, t), rep)
}

// checkRx reports what of a receive context's attributes is not offered.
func (q *query) checkRx(h fi.RxAttr, t epType) *refusal {
	if r := subset("rx_attr.caps", h.Caps, allCaps); r != nil {
		return r
	}
	h.Caps = 0 // they are the application's choice
	_, r := q.negotiateRx(h, 0, false, t)
	return r
}
