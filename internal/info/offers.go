package info

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/nic"
	"github.com/weft-fabric/weft/provider/names"
)

// candidate is one offer in the making.
type candidate struct {
	local names.Local // gives fabric and domain
	src   names.Name
	dest  names.Name // zero: none
	nic   *nic.NIC   // of the interface, nil if nothing is known
}

// offers returns one Info per template and candidate, those of the first
// template first.
func (q *query) offers(h *fi.Info, templates []*fi.Info) ([]*fi.Info, error) {
	list, err := q.candidates(h)
	if err != nil {
		return nil, err
	}
	list, r := filter(list, h)
	if r != nil {
		return nil, r
	}
	infos := make([]*fi.Info, 0, len(templates)*len(list))
	for _, template := range templates {
		for _, c := range list {
			info, err := c.info(orDefault(h.AddrFormat, q.alias.format), template)
			if err != nil {
				return nil, err
			}
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// candidates returns the candidates for the arguments' and hints' addresses.
func (q *query) candidates(h *fi.Info) ([]candidate, error) {
	srcs, dests, err := q.endpoints(h)
	if err != nil {
		return nil, err
	}
	list, err := q.locals(srcs)
	if err != nil {
		return nil, err
	}
	if err := q.checkIface(); err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(c candidate) bool {
		return !names.Fits(h.AddrFormat, c.src) || q.cfg.Iface != "" && q.cfg.Iface != c.local.Iface
	})
	list = q.order(list, h.Domain.Name, slices.ContainsFunc(srcs, func(s names.Name) bool { return !s.IsAny() }))
	if len(list) == 0 {
		return nil, refuse("src_addr", "no matching address on this host")
	}
	if dests == nil {
		return list, nil
	}
	return q.towards(list, dests)
}

// checkIface warns of a configured interface that this host does not have, or has without an address: nothing can be
// offered then, whatever the hints say.
func (q *query) checkIface() error {
	all, err := names.Locals(q.env.Interfaces)
	is := func(l names.Local) bool { return l.Iface == q.cfg.Iface }
	if err != nil || q.cfg.Iface == "" || slices.ContainsFunc(all, is) {
		return err
	}
	log.Warnf(log.Core, "FI_WEFT_IFACE=%q: no interface of this name has an address here", q.cfg.Iface)
	return fmt.Errorf("no interface %q: %w", q.cfg.Iface, fi.ENODATA)
}

// endpoints returns the source and destination names that the arguments and
// the hints ask for; nil means none are asked for.
func (q *query) endpoints(h *fi.Info) (srcs, dests []names.Name, err error) {
	fromArgs := q.node != "" || q.service != ""
	var resolved []names.Name
	if fromArgs {
		resolved, err = q.env.Resolver.Resolve(q.node, q.service, q.flags&fi.NumericHost != 0)
		if err != nil {
			return nil, nil, err
		}
	}
	if q.flags&fi.Source != 0 {
		srcs = resolved
	} else if srcs, err = decodeHint("src_addr", h.AddrFormat, h.SrcAddr); err != nil {
		return nil, nil, err
	}
	if fromArgs && q.flags&fi.Source == 0 {
		dests = resolved
	} else if dests, err = decodeHint("dest_addr", h.AddrFormat, h.DestAddr); err != nil {
		return nil, nil, err
	}
	return srcs, dests, nil
}

// decodeHint decodes an address of the hints; an absent one gives nil.
func decodeHint(attr string, f fi.AddrFormat, b []byte) ([]names.Name, error) {
	if len(b) == 0 {
		return nil, nil
	}
	n, err := names.Decode(f, b)
	if err != nil {
		return nil, refuse(attr, "%v", err)
	}
	return []names.Name{n}, nil
}

// locals returns a candidate for each local address that srcs admit. A
// wildcard source admits every address of its family; if it has a port, the
// wildcard is what the endpoint is to bind.
func (q *query) locals(srcs []names.Name) ([]candidate, error) {
	all, err := names.Locals(q.env.Interfaces)
	if err != nil {
		return nil, err
	}
	var list []candidate
	if srcs == nil {
		for _, l := range all {
			list = append(list, candidate{local: l, src: l.Name})
		}
		return list, nil
	}
	for _, l := range all {
		for _, s := range srcs {
			if s.IsAny() && s.Family == l.Name.Family {
				c := candidate{local: l, src: l.Name}
				if s.Port != 0 {
					c.src = s
				}
				list = append(list, c)
			}
		}
	}
	for _, s := range srcs {
		if s.IsAny() {
			continue
		}
		l, ok, err := names.Find(q.env.Interfaces, s)
		if err != nil {
			return nil, err
		}
		if !ok {
			log.Infof(log.Core, "source address %v is not on this host", s)
			continue
		}
		list = append(list, candidate{local: l, src: s})
	}
	return list, nil
}

// towards gives each candidate the first destination of its family, drops
// candidates without one and loopback candidates for destinations elsewhere,
// and puts the addresses that the kernel would send from first.
func (q *query) towards(list []candidate, dests []names.Name) ([]candidate, error) {
	var usable []candidate
	routed := map[names.Name]bool{}
	for _, family := range []uint16{names.AFInet, names.AFInet6} {
		i := slices.IndexFunc(dests, func(n names.Name) bool { return n.Family == family })
		if i < 0 {
			continue
		}
		dest := dests[i]
		if dest.IsAny() {
			dest = dest.WithAddrOf(loopback(family))
		}
		local, err := names.IsLocal(q.env.Interfaces, dest)
		if err != nil {
			return nil, err
		}
		if src, err := q.env.Route(dest); err == nil {
			routed[src.WithPort(0)] = true
		}
		for _, c := range list {
			if c.src.Family == family && (local || !c.local.Loopback) {
				c.dest = dest
				usable = append(usable, c)
			}
		}
	}
	if len(usable) == 0 {
		return nil, refuse("dest_addr", "no matching address on this host leads there")
	}
	slices.SortStableFunc(usable, func(a, b candidate) int {
		return rank(routed[b.local.Name]) - rank(routed[a.local.Name])
	})
	return usable, nil
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// loopback returns the loopback address of a family, as getaddrinfo gives it
// for a destination without a node.
func loopback(family uint16) names.Name {
	n := names.Any(family, 0)
	if family == names.AFInet {
		n.IP[0], n.IP[3] = 127, 1
	} else {
		n.IP[15] = 1
	}
	return n
}

// filter drops the candidates of other fabrics and domains than the hints name.
func filter(list []candidate, h *fi.Info) ([]candidate, *refusal) {
	fabrics, r := wanted("fabric_attr", h.Fabric.Name, h.Fabric.Fabric, func(f Fabric) string { return f.FabricName() })
	if r != nil {
		return nil, r
	}
	domains, r := wanted("domain_attr", h.Domain.Name, h.Domain.Domain, func(d Domain) string { return d.DomainName() })
	if r != nil {
		return nil, r
	}
	list = keep(list, fabrics, func(c candidate) string { return c.local.Prefix.String() })
	if len(list) == 0 {
		return nil, refuse("fabric_attr.name", "no fabric of name %q here", fabrics)
	}
	list = keep(list, domains, func(c candidate) string { return c.local.Iface })
	if len(list) == 0 {
		return nil, refuse("domain_attr.name", "no domain of name %q here", domains)
	}
	return list, nil
}

// keep returns the candidates, or devices, whose name is every one of those wanted.
func keep[T any](list []T, want []string, name func(T) string) []T {
	return slices.DeleteFunc(list, func(c T) bool {
		return slices.ContainsFunc(want, func(w string) bool { return w != name(c) })
	})
}

// wanted collects the names that a hinted name and a hinted object ask for.
func wanted[T any](attr, name string, object any, nameOf func(T) string) ([]string, *refusal) {
	var list []string
	if name != "" {
		list = append(list, name)
	}
	if object == nil {
		return list, nil
	}
	o, ok := object.(T)
	if !ok {
		return nil, refuse(attr, "the object given is not weft's")
	}
	return append(list, nameOf(o)), nil
}

// info makes the offer.
func (c candidate) info(format fi.AddrFormat, template *fi.Info) (*fi.Info, error) {
	if format == fi.FormatUnspec {
		format = fi.SockaddrIn
		if c.src.Family == names.AFInet6 {
			format = fi.SockaddrIn6
		}
	}
	i := template.Clone()
	i.AddrFormat = format
	i.Fabric.Name = c.local.Prefix.String()
	i.Domain.Name = c.local.Iface
	if c.nic != nil {
		i.NIC = describe(c.nic)
	}
	var err error
	if i.SrcAddr, err = names.Encode(format, c.src); err != nil {
		return nil, err
	}
	if !c.dest.IsZero() {
		i.DestAddr, err = names.Encode(format, c.dest)
	}
	return i, err
}
