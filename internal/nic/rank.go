package nic

import (
	"cmp"
	"fmt"
	"slices"
)

// Rank is how likely an interface leads to the other hosts of a job, the best first.
type Rank int

// Ranks.
const (
	RDMA     Rank = iota // an RDMA device stands on it
	Wired                // a device's, or what bundles or divides devices
	Bridged              // a bridge with a wired port: the host's own network
	Wireless             //
	Virtual              // software: in a container its network
	Bridge               // without a wired port: between containers of a host
	Tunnel               // a VPN, and what else has peers of its own
	Loopback             // this host only
)

// tunnels are the kinds of interfaces that lead to peers of a tunnel, or nowhere.
var tunnels = []string{"tun", "wireguard", "ppp", "ipip", "ip6tnl", "sit", "gre", "gretap", "ip6gre", "ip6gretap",
	"vti", "vti6", "xfrm", "vxlan", "geneve", "gtp", "bareudp", "erspan", "l2tp", "ipsec", "dummy", "ifb", "nlmon",
	"vcan"}

// Rank returns the interface's rank.
func (n *NIC) Rank() Rank {
	switch {
	case n.Loopback:
		return Loopback
	case n.RDMA != "":
		return RDMA
	case slices.Contains(tunnels, n.Kind) || n.Network() == "tunnel":
		return Tunnel
	case n.Kind == "bridge" || n.Kind == "openvswitch":
		if n.Wired {
			return Bridged
		}
		return Bridge
	case n.Wireless:
		return Wireless
	case n.Wired || n.Kind == "":
		return Wired // what sysfs does not show is no software that the kernel names
	}
	return Virtual
}

// Reason says in a few words what gives the interface its place.
func (n *NIC) Reason() string {
	var what string
	switch n.Rank() {
	case RDMA:
		what = "RDMA device " + n.RDMA
	case Wired:
		if what = "wired"; n.Kind != "" {
			what = n.Kind + " over wired"
		}
	case Bridged:
		what = "bridge with a wired port"
	case Wireless:
		what = "wireless"
	case Virtual:
		what = "virtual (" + n.Kind + ")"
	case Bridge:
		what = "bridge without a wired port"
	case Tunnel:
		if what = "tunnel or VPN"; n.Kind != "" {
			what += " (" + n.Kind + ")"
		}
	case Loopback:
		return "loopback: this host only"
	}
	if n.Speed != 0 {
		what += fmt.Sprintf(", %g Gb/s", float64(n.Speed)/1e9)
	}
	return what
}

// Compare orders interfaces: by rank, then the faster first, those of unknown speed last,
// then as the kernel numbers them.
func Compare(a, b *NIC) int {
	return cmp.Or(ComparePreference(a, b), cmp.Compare(a.Index, b.Index))
}

// ComparePreference is [Compare] without the kernel's numbers.
func ComparePreference(a, b *NIC) int {
	return cmp.Or(cmp.Compare(a.Rank(), b.Rank()), cmp.Compare(b.Speed, a.Speed))
}
