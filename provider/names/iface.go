package names

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Interface is a network interface of this host.
type Interface struct {
	Name     string
	Index    int
	Up       bool
	Loopback bool
	// Prefixes are the interface's addresses with the length of their
	// network's prefix.
	Prefixes []netip.Prefix
}

// Source lists the interfaces of this host. Tests give their own.
type Source func() ([]Interface, error)

// System lists the interfaces that the kernel reports.
func System() ([]Interface, error) {
	ifis, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	var list []Interface
	for _, ifi := range ifis {
		addrs, err := ifi.Addrs()
		if err != nil {
			return nil, fmt.Errorf("addresses of interface %s: %w", ifi.Name, err)
		}
		i := Interface{
			Name:     ifi.Name,
			Index:    ifi.Index,
			Up:       ifi.Flags&net.FlagUp != 0,
			Loopback: ifi.Flags&net.FlagLoopback != 0,
		}
		for _, a := range addrs {
			ipnet, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			if p, ok := prefixOf(ipnet); ok {
				i.Prefixes = append(i.Prefixes, p)
			}
		}
		list = append(list, i)
	}
	return list, nil
}

// prefixOf converts an address with its mask.
func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	a, ok := netip.AddrFromSlice(n.IP)
	if !ok {
		return netip.Prefix{}, false
	}
	ones, _ := n.Mask.Size()
	p := netip.PrefixFrom(a.Unmap(), ones)
	return p, p.IsValid()
}

// Local is an address of this host that an endpoint can have.
type Local struct {
	Name   Name         // with port 0
	Prefix netip.Prefix // the network, host bits cleared
	Iface  string       // name of the interface
	// Loopback reports whether the interface is a loopback interface.
	Loopback bool
}

// Locals returns the addresses of the interfaces that are up, in the order in
// which they are offered: real interfaces before loopback ones, IPv4 before
// IPv6, then as the kernel numbers the interfaces. IPv6 link-local addresses
// are left out: they name a peer only together with an interface.
func Locals(src Source) ([]Local, error) {
	ifis, err := src()
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(ifis, func(a, b Interface) int { return cmp.Compare(a.Index, b.Index) })
	var list []Local
	for _, ifi := range ifis {
		if !ifi.Up {
			continue
		}
		for _, p := range ifi.Prefixes {
			a := p.Addr()
			if a.IsLinkLocalUnicast() && a.Is6() || a.IsMulticast() || a.IsUnspecified() {
				continue
			}
			list = append(list, Local{
				Name: New(a, 0), Prefix: p.Masked(), Iface: ifi.Name, Loopback: ifi.Loopback,
			})
		}
	}
	slices.SortStableFunc(list, func(a, b Local) int {
		if a.Loopback != b.Loopback {
			if a.Loopback {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.Name.Family, b.Name.Family)
	})
	return list, nil
}

// Find returns the local address that n stands for: n's address on the
// interface that has it. Any address in a loopback interface's IPv4 network
// is local, as the kernel has it, and so is a link-local IPv6 address whose
// scope is the interface's index. It reports false if n is not an address of
// this host; wildcards are none.
func Find(src Source, n Name) (Local, bool, error) {
	ifis, err := src()
	if err != nil || n.IsAny() {
		return Local{}, false, err
	}
	a := n.Addr().Unmap()
	for _, ifi := range ifis {
		if !ifi.Up {
			continue
		}
		for _, p := range ifi.Prefixes {
			if has(ifi, p, a, n.Scope) {
				return Local{
					Name: n.WithPort(0), Prefix: p.Masked(), Iface: ifi.Name, Loopback: ifi.Loopback,
				}, true, nil
			}
		}
	}
	return Local{}, false, nil
}

// has reports whether a is the interface's address p, or in the loopback
// network p.
func has(ifi Interface, p netip.Prefix, a netip.Addr, scope uint32) bool {
	if a.Is6() && a.IsLinkLocalUnicast() && scope != uint32(ifi.Index) {
		return false
	}
	return p.Addr() == a || ifi.Loopback && a.Is4() && p.Contains(a)
}

// IsLocal reports whether n's address is an address of this host.
func IsLocal(src Source, n Name) (bool, error) {
	_, ok, err := Find(src, n)
	return ok, err
}
