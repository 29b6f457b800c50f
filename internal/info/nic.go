package info

import (
	"cmp"
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/nic"
)

// systemNICs finds the interfaces of this network namespace when the first one is asked for.
func systemNICs() func(iface string) (nic.NIC, bool) {
	var links map[string]nic.Link
	return func(iface string) (nic.NIC, bool) {
		if links == nil {
			var err error
			if links, err = nic.Links(); err != nil {
				log.Infof(log.Core, "%v", err)
				links = map[string]nic.Link{}
			}
		}
		l, ok := links[iface]
		if !ok {
			return nic.NIC{}, false
		}
		n, _ := nic.Describe(nic.Sysfs, l)
		return n, true
	}
}

// nicOf describes an interface of this host, nil if there is none of that name.
func nicOf(iface string) *fi.NIC {
	n, ok := systemNICs()(iface)
	if !ok {
		return nil
	}
	return describe(&n)
}

// describe returns what struct fid_nic says of an interface.
func describe(n *nic.NIC) *fi.NIC {
	out := &fi.NIC{
		Name: cmp.Or(n.RDMA, n.Name), DeviceID: n.DeviceID, DeviceVersion: n.Revision, VendorID: n.VendorID,
		Driver: n.Driver, Firmware: n.Firmware, Address: n.Address.String(), MTU: uint64(n.MTU), Speed: n.Speed,
		State: fi.LinkDown, NetworkType: n.Network(),
	}
	if n.Up && n.Running {
		out.State = fi.LinkUp
	}
	if n.PCI != nil {
		out.PCI = &fi.PCIAttr{Domain: n.PCI.Domain, Bus: n.PCI.Bus, Device: n.PCI.Device, Function: n.PCI.Function}
	}
	return out
}

// order puts the candidates of the interfaces first that are likeliest to lead to the
// other hosts of a job, and drops those of interfaces without a carrier that nothing
// names: neither srcs, the configuration nor the hinted domain.
func (q *query) order(list []candidate, domain string, named bool) []candidate {
	if q.env.NICs == nil {
		return list
	}
	lookup, known := q.env.NICs(), map[string]*nic.NIC{}
	for i := range list {
		name := list[i].local.Iface
		n := known[name]
		if n == nil {
			n = &nic.NIC{Link: nic.Link{Name: name, Running: true, Loopback: list[i].local.Loopback}}
			if found, ok := lookup(name); ok {
				n = &found
			}
			known[name] = n
		}
		list[i].nic = n
	}
	list = slices.DeleteFunc(list, func(c candidate) bool {
		drop := !c.nic.Running && !named && c.nic.Name != q.cfg.Iface && c.nic.Name != domain
		if drop {
			log.Infof(log.Core, "fi_getinfo: %v of %s is not offered: no carrier", c.src.Addr(), c.nic.Name)
		}
		return drop
	})
	slices.SortStableFunc(list, func(a, b candidate) int { return nic.ComparePreference(a.nic, b.nic) })
	return list
}

// NICOfDomain describes the network interface of a domain, nil if there is none or no name.
func NICOfDomain(d *fi.DomainAttr) *fi.NIC {
	if d == nil {
		return nil
	}
	return nicOf(d.Name)
}
