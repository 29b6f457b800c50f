// Package info answers fi_getinfo: it negotiates an application's hints
// against what weft can do, and offers one fi.Info per endpoint type and address
// of this host.
//
// # What is offered
//
// Every claim is written down once: capabilities with their reason in
// caps.go, limits in limits.go. A hint that cannot be met is refused
// with fi.ENODATA and a log line (level info, subsystem core) that names the
// attribute as C does and says why. A hint that is met is returned: the
// requested value where the application's choice matters (models, order,
// contexts' sizes), else the limit, which is at least the requested value.
//
// # Names
//
// The fabric is an address's network ("10.0.0.0/24"), the domain its
// interface ("eth0"). Interfaces come in the order of [nic.Compare], RDMA and fast wired
// ones first and loopback last, those without a carrier only when they are named; of one
// kind IPv4 comes before IPv6. A source port
// without a source address gives the wildcard address with that port as
// SrcAddr, as getaddrinfo does for a listener, in the Info of every interface:
// an endpoint opened from it is reached through every address of the host.
// With a destination, the address that the kernel would send from comes first.
package info

import (
	"fmt"
	"path/filepath"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/nic"
	"github.com/weft-fabric/weft/provider/names"
)

// Env is what the answer depends on besides the arguments.
type Env struct {
	// Interfaces lists this host's interfaces.
	Interfaces names.Source
	// Resolver resolves node and service.
	Resolver names.Resolver
	// Route returns the address that the kernel sends from to a destination.
	Route func(dest names.Name) (names.Name, error)
	// NICs returns what describes an interface, for one query, or reports that there is
	// none of that name. nil: nothing is known, and the order is that of [names.Locals].
	NICs func() func(iface string) (nic.NIC, bool)
	// Host is the version of the library through which the application asks, 0: none.
	Host uint32
	// GPUs reports whether there are GPUs whose memory weft can copy. nil: no.
	GPUs func() bool
	// RDMA reports whether there are RDMA devices. nil: no.
	RDMA func() bool
	// CXI reports whether there are NICs of Slingshot. nil: no.
	CXI func() bool
	// Matching lists the devices that match messages. Errors say why there is none. nil: there is none.
	Matching func(cfg *config.Config) ([]MatchDevice, error)
}

// System returns the environment of this host for a query that came through a library of
// version host, 0: none.
func System(host uint32) *Env {
	return &Env{
		Interfaces: names.System, Resolver: names.SystemResolver, Route: names.Route,
		NICs: systemNICs,
		Host: host,
		GPUs: func() bool { return cuda.Load() == nil },
		RDMA: func() bool {
			found, _ := filepath.Glob("/sys/class/infiniband/*")
			return len(found) != 0
		},
		CXI: func() bool {
			found, _ := filepath.Glob("/sys/class/cxi/*")
			return len(found) != 0
		},
	}
}

// internalFlags are the bits that a host library uses for itself and passes
// on to providers. They mean nothing here.
const internalFlags uint64 = 0x3F << 58

// layered among them says that one of the host's utility providers asks
// (OFI_CORE_PROV_ONLY in libfabric's include/ofi.h, 1.17 as 2.x).
const layered uint64 = 1 << 59

// Flags are the bits of fi_getinfo's flags that are known, and among them that by which the
// host's utility providers ask, which get FI_EP_RDM only.
func Flags() (known, utility uint64) { return knownFlags, layered }

// knownFlags are the flags of fi_getinfo. Interfaces are listed on every call,
// so FI_RESCAN asks for nothing more.
const knownFlags = fi.Source | fi.NumericHost | fi.ProvAttrOnly | fi.Rescan | internalFlags

// GetInfo returns what weft offers for the arguments of fi_getinfo, the best
// first. An empty node or service is an absent one. A nil cfg stands for the
// defaults. Neither hints nor cfg is kept or changed.
//
// Errors wrap fi.ENODATA (nothing matches, a name does not resolve, or a utility provider asks with FI_PROV_ATTR_ONLY),
// fi.EBADFLAGS (unknown flags), fi.EINVAL (FI_SOURCE without node and service,
// FI_ADDR_STR with a service). An API version below 1.0, which MPICH asks for first, is
// answered as the oldest.
func (e *Env) GetInfo(version uint32, node, service string, flags uint64, hints *fi.Info,
	cfg *config.Config) ([]*fi.Info, error) {
	if cfg == nil {
		cfg = config.Default()
	}
	q := &query{env: e, version: version, node: node, service: service, flags: flags, cfg: cfg,
		alias: aliasOf(cfg.Name)}
	infos, err := q.run(hints)
	if err != nil {
		log.Infof(log.Core, "fi_getinfo: %v", err)
		return nil, err
	}
	return infos, nil
}

// query is one call of GetInfo.
type query struct {
	env     *Env
	version uint32
	node    string
	service string
	flags   uint64
	cfg     *config.Config
	alias   *alias // the name that answers have
}

func (q *query) run(hints *fi.Info) ([]*fi.Info, error) {
	if bad := q.flags &^ knownFlags; bad != 0 {
		return nil, fmt.Errorf("flags %#x are unknown: %w", bad, fi.EBADFLAGS)
	}
	if q.flags&fi.ProvAttrOnly != 0 {
		if q.flags&layered != 0 {
			return nil, refuse("flags", "FI_PROV_ATTR_ONLY of a utility provider, which reads names, too")
		}
		return []*fi.Info{q.bare()}, nil
	}
	if q.flags&fi.Source != 0 && q.node == "" && q.service == "" {
		return nil, fmt.Errorf("FI_SOURCE without node and service: %w", fi.EINVAL)
	}
	h := complete(hints)
	if q.wantsMatched(h) {
		return q.matched(hints, h)
	}
	types, first := q.wantedTypes(h.EP.Type)
	var templates []*fi.Info
	for _, t := range types {
		template, r := q.negotiate(hints, t)
		if r == nil {
			templates = append(templates, template)
		} else if first == nil {
			first = r
		}
	}
	if len(templates) == 0 {
		return nil, first
	}
	return q.offers(h, templates)
}

// bare returns the answer to FI_PROV_ATTR_ONLY.
func (q *query) bare() *fi.Info {
	return &fi.Info{
		Tx: &fi.TxAttr{}, Rx: &fi.RxAttr{}, EP: &fi.EPAttr{}, Domain: &fi.DomainAttr{},
		Fabric: &fi.FabricAttr{ProvName: q.alias.name, ProvVersion: ProvVersion},
	}
}

// negotiate returns what all offers of an endpoint type have in common:
// everything but names.
func (q *query) negotiate(given *fi.Info, t epType) (*fi.Info, *refusal) {
	h := complete(given)
	if r := firstRefusal(q.checkFabric(h.Fabric), q.checkFormat(h.AddrFormat, t),
		q.checkDomainCaps(h.Domain.Caps)); r != nil {
		return nil, r
	}
	all := t.caps
	if q.version < fi.Version(2, 0) {
		all &^= caps20
	}
	caps, r := negotiateCaps(h.Caps, h.Domain.Caps, all, given != nil)
	if r != nil {
		return nil, r
	}
	asked := *h.Tx
	asked.MsgOrder |= t.impliedOrder(h.EP, caps)
	tx, rtx := q.negotiateTx(asked, caps, given == nil, t)
	rx, rrx := q.negotiateRx(*h.Rx, caps, given == nil, t)
	ep, rep := q.negotiateEP(*h.EP, h.Domain, order(asked.MsgOrder, given == nil), caps, t)
	domain, rdomain := q.negotiateDomain(*h.Domain, caps, t)
	if r := firstRefusal(rtx, rrx, rep, rdomain); r != nil {
		return nil, r
	}
	return &fi.Info{
		Caps: caps, Handle: h.Handle, Tx: tx, Rx: rx, EP: ep, Domain: domain,
		Fabric: &fi.FabricAttr{
			Fabric: h.Fabric.Fabric, ProvName: q.alias.name,
			ProvVersion: ProvVersion, APIVersion: q.version,
		},
	}, nil
}

// complete returns hints with no attribute absent. The attributes of hints are
// shared, not copied.
func complete(hints *fi.Info) *fi.Info {
	h := fi.Info{}
	if hints != nil {
		h = *hints
	}
	orNew(&h.Tx)
	orNew(&h.Rx)
	orNew(&h.EP)
	orNew(&h.Domain)
	orNew(&h.Fabric)
	return &h
}

func orNew[T any](p **T) {
	if *p == nil {
		*p = new(T)
	}
}

// checkFabric checks the hints about the provider.
func (q *query) checkFabric(h *fi.FabricAttr) *refusal {
	if !q.alias.admits(h.ProvName) {
		return refuse("fabric_attr.prov_name", "%q is not %s", h.ProvName, q.alias.name)
	}
	return atMost("fabric_attr.prov_version", uint64(h.ProvVersion), uint64(ProvVersion))
}

func (q *query) checkFormat(f fi.AddrFormat, t epType) *refusal {
	if t.match != nil {
		return oneOf("addr_format", f, fi.FormatUnspec, matchedFormat)
	}
	return oneOf("addr_format", f, q.alias.formats()...)
}
