package verbs

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/Mellanox/rdmamap"
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
)

// Device is an RDMA device that this process may use.
type Device struct {
	Name string
	// Netdevs are the network interfaces of this network namespace that stand on the device; none for an
	// InfiniBand device without IP.
	Netdevs []string
	// Ports are its port numbers.
	Ports []int
	// NUMANode of the device, -1 if unknown.
	NUMANode int
}

// sysfsRoot is where the kernel shows devices.
const sysfsRoot = "/sys"

// Devices lists the devices of this network namespace: those that a network
// interface of it stands on, and InfiniBand devices that it sees. A RoCE device
// with its network interface in another namespace is none of them: its GIDs
// name addresses that this process does not have. Errors: ibv.ErrAbsent without
// libibverbs; hw.ErrUnreachable, wrapped, when there is no device.
func Devices() ([]Device, error) {
	if err := ibv.Load(ibv.DefaultLibrary); err != nil {
		return nil, err
	}
	byNetdev := map[string][]string{}
	ifaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("verbs: list network interfaces: %w", err)
	}
	for _, i := range ifaces {
		if dev, err := rdmamap.GetRdmaDeviceForNetdevice(i.Name); err == nil && dev != "" {
			byNetdev[dev] = append(byNetdev[dev], i.Name)
		}
	}
	var list []Device
	names := rdmamap.GetRdmaDeviceList()
	slices.Sort(names)
	for _, name := range names {
		d := Device{Name: name, Netdevs: byNetdev[name], NUMANode: numaNode(sysfsRoot, name)}
		for _, p := range rdmamap.GetPorts(name) {
			if n, err := strconv.Atoi(p); err == nil {
				d.Ports = append(d.Ports, n)
			}
		}
		slices.Sort(d.Ports)
		if len(d.Netdevs) > 0 || infiniband(sysfsRoot, name) {
			list = append(list, d)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("verbs: no RDMA device in this network namespace: %w", hw.ErrUnreachable)
	}
	return list, nil
}

// device finds a device by name, or the first one with an empty name.
func device(name string) (Device, error) {
	list, err := Devices()
	if err != nil {
		return Device{}, err
	}
	for _, d := range list {
		if name == "" || d.Name == name {
			return d, nil
		}
	}
	return Device{}, fmt.Errorf("verbs: no RDMA device %s in this network namespace: %w", name,
		errors.Join(hw.ErrUnreachable, unix.ENODEV))
}

func sysfsText(root, device string, path ...string) string {
	b, err := os.ReadFile(filepath.Join(append([]string{root, "class/infiniband", device}, path...)...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func numaNode(root, device string) int {
	if n, err := strconv.Atoi(sysfsText(root, device, "device/numa_node")); err == nil {
		return n
	}
	return -1
}

// infiniband reports whether a port of the device is not Ethernet.
func infiniband(root, device string) bool {
	links, _ := filepath.Glob(filepath.Join(root, "class/infiniband", device, "ports/*/link_layer"))
	return slices.ContainsFunc(links, func(f string) bool {
		b, err := os.ReadFile(f)
		return err == nil && strings.TrimSpace(string(b)) == "InfiniBand"
	})
}

// gidEntry is one entry of a port's GID table.
type gidEntry struct {
	index  int
	gid    [16]byte
	kind   GIDType
	netdev string
}

// gidTable reads what the kernel says of a port's GIDs: those that are set,
// with their kind and network interface. The kernel refuses the names of
// interfaces of other network namespaces; those entries have none.
func gidTable(root, device string, port int) []gidEntry {
	var list []gidEntry
	base := []string{"ports", strconv.Itoa(port)}
	files, _ := filepath.Glob(filepath.Join(root, "class/infiniband", device, "ports", strconv.Itoa(port), "gids/*"))
	for _, f := range files {
		index, err := strconv.Atoi(filepath.Base(f))
		if err != nil {
			continue
		}
		n := strconv.Itoa(index)
		addr, err := netip.ParseAddr(sysfsText(root, device, append(base, "gids", n)...))
		if err != nil || addr.IsUnspecified() {
			continue
		}
		e := gidEntry{index: index, gid: addr.As16(),
			netdev: sysfsText(root, device, append(base, "gid_attrs/ndevs", n)...)}
		if strings.Contains(sysfsText(root, device, append(base, "gid_attrs/types", n)...), "v2") {
			e.kind = GIDRoCEv2
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b gidEntry) int { return a.index - b.index })
	return list
}

// chooseGID picks the GID by which peers reach an Ethernet port. UDP/IP (RoCE
// v2) is preferred because routers carry it and because both ends of a
// mixed pair have it; among those an IPv4 address, then a global IPv6 one, then
// a link-local one. An InfiniBand port uses its first. here are the network
// interfaces of this namespace.
func chooseGID(list []gidEntry, ethernet bool, here []string) (gidEntry, error) {
	best, bestRank := gidEntry{}, -1
	for _, e := range list {
		rank := 0
		if ethernet {
			if !slices.Contains(here, e.netdev) {
				continue
			}
			rank = rankGID(e)
		}
		if rank > bestRank {
			best, bestRank = e, rank
		}
	}
	if bestRank < 0 {
		return best, fmt.Errorf("verbs: no GID of a network interface of this namespace (%s): %w",
			strings.Join(here, " "), hw.ErrUnreachable)
	}
	return best, nil
}

func rankGID(e gidEntry) int {
	rank := 0
	if e.kind == GIDRoCEv2 {
		rank += 10
	}
	switch a := netip.AddrFrom16(e.gid); {
	case a.Is4In6():
		rank += 3
	case !a.IsLinkLocalUnicast():
		rank += 2
	}
	return rank
}
