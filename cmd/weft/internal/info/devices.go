package info

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/cmd/weft/internal/fabric"
	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/internal/nic"
	"github.com/weft-fabric/weft/provider/names"
)

// Library is one of weft's libraries.
type Library struct {
	Name string `json:"name"`
	Path string `json:"path,omitempty"` // empty: it was not found
}

// Device is a network interface. The report has them in the order of fi_getinfo's answers.
type Device struct {
	Name      string   `json:"name"`
	Up        bool     `json:"up"`
	MTU       int      `json:"mtu"`
	Addresses []string `json:"addresses"`
	RDMA      string   `json:"rdma,omitempty"`
	// Place is its number among those that are offered, from 1 on; 0: it is not, or only by name.
	Place int `json:"place,omitempty"`
	// Reason says why it has its place, or none.
	Reason string `json:"reason"`
}

// weftLibraries finds weft's libraries: those of FI_PROVIDER_PATH, beside this command, or
// where libfabrics search.
func weftLibraries(settings *fabric.Settings) []Library {
	path, _ := settings.Lookup("FI_PROVIDER_PATH")
	folders := fabric.ProviderFolders(path)
	return []Library{
		{"libweft-fi.so", fabric.FindWeft("libweft-fi.so", folders, fabric.Roots())},
		{"libweft.so", fabric.FindWeft("libweft.so", nil, fabric.Roots())},
	}
}

// devices lists the interfaces; only is FI_WEFT_IFACE, empty for all.
func devices(only string) []Device {
	list, err := net.Interfaces()
	if err != nil {
		return nil
	}
	links, err := nic.Links()
	if err != nil {
		return nil
	}
	nics, byName := []*nic.NIC{}, map[string]net.Interface{}
	for _, i := range list {
		n, _ := nic.Describe(nic.Sysfs, links[i.Name])
		n.Name = i.Name
		nics, byName[i.Name] = append(nics, &n), i
	}
	slices.SortFunc(nics, nic.Compare)
	offers := map[string]bool{} // interfaces with addresses that endpoints can have
	locals, _ := names.Locals(names.System)
	for _, l := range locals {
		offers[l.Iface] = true
	}
	var out []Device
	place := 0
	for _, n := range nics {
		d := Device{Name: n.Name, Up: n.Up, MTU: n.MTU, Addresses: []string{}, RDMA: n.RDMA}
		i := byName[n.Name]
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			d.Addresses = append(d.Addresses, a.String())
		}
		var offered bool
		if d.Reason, offered = reason(n, offers[n.Name], only); offered {
			place++
			d.Place = place
		}
		out = append(out, d)
	}
	return out
}

// reason says why an interface is offered, or is not.
func reason(n *nic.NIC, addressed bool, only string) (text string, offered bool) {
	switch {
	case !n.Up:
		return "down: not offered", false
	case !addressed:
		return n.Reason() + "; no address for endpoints: not offered", false
	case only != "" && only != n.Name:
		return n.Reason() + "; not FI_WEFT_IFACE: not offered", false
	case !n.Running && only == "":
		return n.Reason() + "; no carrier: offered only by name", false
	}
	return n.Reason(), true
}

func (r *Report) deviceTable(s text.Style) *text.Table {
	t := &text.Table{}
	for _, d := range r.Devices {
		state := s.Good("up")
		if !d.Up {
			state = s.Dim("down")
		}
		place := ""
		if d.Place != 0 {
			place = fmt.Sprintf("%d.", d.Place)
		}
		t.Row(place, d.Name, state, fmt.Sprintf("mtu %d", d.MTU), strings.Join(d.Addresses, " "), d.Reason)
	}
	return t
}

func (r *Report) libraryTable(s text.Style) *text.Table {
	t := &text.Table{}
	for _, l := range r.Libraries {
		path := l.Path
		if path == "" {
			path = s.Warn("not found")
		}
		t.Row(l.Name, path)
	}
	return t
}

// value reads variables, those that are not set as empty.
func value(lookup func(string) (string, bool)) func(string) string {
	return func(name string) string {
		v, _ := lookup(name)
		return v
	}
}

// slingshotTable shows each NIC of Slingshot in three lines: what it is, what it has, and what a program would choose.
func (r *Report) slingshotTable(s text.Style) *text.Table {
	t := &text.Table{}
	for _, d := range r.Slingshot {
		link := s.Good(d.Link)
		if d.Link != "up" {
			link = s.Warn(d.Link)
		}
		t.Row(d.Name, fmt.Sprintf("NID %#x, %s, link %s, %d Mbit/s, NUMA node %d", d.NID,
			cmp.Or(d.Netdev, "no network interface"), link, d.Mbps, d.NUMANode))
		var limits []string
		for _, l := range d.Limits {
			limits = append(limits, fmt.Sprintf("%d %s", l.Count, l.What))
		}
		if len(limits) != 0 {
			t.Row("", "has "+strings.Join(limits, ", "))
		}
		if d.Service != 0 {
			t.Row("", fmt.Sprintf("service %d, VNI %d: %s", d.Service, d.VNI, d.Why))
		} else if d.Why != "" {
			t.Row("", "service: "+d.Why)
		}
		if d.Problem != "" {
			t.Row("", s.Bad(d.Problem))
		}
	}
	return t
}
