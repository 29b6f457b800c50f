// Package nic describes the network interfaces of this host: what hardware or
// software they are, which RDMA device stands on them, and which are better than others.
//
// Two sources are put together: [Links], what the kernel says of the interfaces of this network namespace, and what
// sysfs shows of their devices. A sysfs that was mounted in another network namespace shows other interfaces under
// the same names; [Describe] takes from it only what belongs to the same interface.
package nic

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Sysfs is where the kernel shows devices.
const Sysfs = "/sys"

// PCI is the address of a PCI function.
type PCI struct {
	Domain                uint16
	Bus, Device, Function uint8
}

// NIC is a network interface with its device. Text that is not known is empty, numbers
// that are not known are 0.
type NIC struct {
	Link
	// RDMA is the RDMA device that stands on the interface.
	RDMA string
	// PCI is where the device is, nil if it is on no PCI bus, or in a domain whose number
	// has more than 16 bits.
	PCI *PCI
	// VendorID, DeviceID and Revision are the PCI function's, such as 0x15b3; those of a
	// device that has its own, as sysfs writes them.
	VendorID, DeviceID, Revision string
	Driver                       string
	Firmware                     string
	Speed                        uint64 // bits per second
	Wireless                     bool
	// Wired says that there is a device behind the interface, or behind one that is a
	// port or part of it, which is not wireless.
	Wired bool
}

// Describe describes an interface by what the sysfs at root shows. ok is false, and only
// the Link is known, where that has no such interface or another one.
func Describe(root string, l Link) (n NIC, ok bool) {
	n.Link = l
	dir := filepath.Join(root, "class/net", l.Name)
	if text(dir, "ifindex") != strconv.Itoa(l.Index) || text(dir, "address") != l.Address.String() {
		return n, false
	}
	if mbits, err := strconv.ParseInt(text(dir, "speed"), 10, 64); err == nil && mbits > 0 {
		n.Speed = uint64(mbits) * 1e6
	}
	n.Wireless = exists(dir, "phy80211") || exists(dir, "wireless")
	n.device(filepath.Join(dir, "device"))
	n.Wired = !n.Wireless && (exists(dir, "device") || wiredBelow(root, dir))
	n.rdma(filepath.Join(root, "class/infiniband"))
	return n, true
}

// wiredBelow reports whether an interface that a bridge, bond or VLAN at dir stands on is
// that of a device.
func wiredBelow(root, dir string) bool {
	for _, pattern := range []string{"lower_*", "brif/*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are well formed
		for _, f := range found {
			name := strings.TrimPrefix(filepath.Base(f), "lower_")
			below := filepath.Join(root, "class/net", name)
			if exists(below, "device") && !exists(below, "phy80211") {
				return true
			}
		}
	}
	return false
}

var pciAddress = regexp.MustCompile(`^([0-9a-f]{4,}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$`)

// device fills in what the device at path says, and the PCI function that it is or stands on.
func (n *NIC) device(path string) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	if driver, err := os.Readlink(filepath.Join(resolved, "driver")); err == nil {
		n.Driver = filepath.Base(driver)
	}
	n.VendorID, n.DeviceID, n.Revision = text(resolved, "vendor"), text(resolved, "device"), text(resolved, "revision")
	for dir := resolved; len(dir) > 1; dir = filepath.Dir(dir) {
		m := pciAddress.FindStringSubmatch(filepath.Base(dir))
		if m == nil {
			continue
		}
		if domain := hex(m[1]); domain <= math.MaxUint16 {
			n.PCI = &PCI{uint16(domain), uint8(hex(m[2])), uint8(hex(m[3])), uint8(hex(m[4]))}
		}
		n.VendorID, n.DeviceID, n.Revision = text(dir, "vendor"), text(dir, "device"), text(dir, "revision")
		return
	}
}

func hex(s string) uint64 {
	v, _ := strconv.ParseUint(s, 16, 64) // the pattern admits nothing else
	return v
}

// rdma finds an RDMA device among those at class that stands on the interface.
func (n *NIC) rdma(class string) {
	list, _ := filepath.Glob(filepath.Join(class, "*")) // the pattern is well formed
	for _, dir := range list {
		port := portOf(dir, n.Name)
		if port == "" {
			continue
		}
		n.RDMA, n.Firmware = filepath.Base(dir), text(dir, "fw_ver")
		// "100 Gb/sec (4X EDR)"
		rate, _, _ := strings.Cut(text(port, "rate"), " Gb/sec")
		if g, err := strconv.ParseFloat(rate, 64); err == nil && g > 0 {
			n.Speed = uint64(g * 1e9)
		}
		return
	}
}

// portOf returns the folder of the RDMA device's port that stands on an interface.
func portOf(dir, netdev string) string {
	ports, _ := filepath.Glob(filepath.Join(dir, "ports/*")) // the pattern is well formed
	for _, p := range ports {
		gids, _ := filepath.Glob(filepath.Join(p, "gid_attrs/ndevs/*"))
		for _, g := range gids {
			if text(g) == netdev {
				return p
			}
		}
	}
	if len(ports) == 1 && exists(dir, "device/net", netdev) {
		return ports[0] // InfiniBand without addresses
	}
	return ""
}

// text returns a file's text without the space around it, empty if there is none.
func text(parts ...string) string {
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func exists(parts ...string) bool {
	_, err := os.Stat(filepath.Join(parts...))
	return err == nil
}

// Network is the kind of network in a word: "Ethernet", "InfiniBand", "loopback",
// "tunnel"; empty if it is another.
func (n *NIC) Network() string {
	switch n.Type {
	case unix.ARPHRD_ETHER:
		return "Ethernet"
	case unix.ARPHRD_INFINIBAND:
		return "InfiniBand"
	case unix.ARPHRD_LOOPBACK:
		return "loopback"
	case unix.ARPHRD_NONE, unix.ARPHRD_PPP, unix.ARPHRD_TUNNEL, unix.ARPHRD_TUNNEL6, unix.ARPHRD_SIT, unix.ARPHRD_IPGRE:
		return "tunnel"
	}
	return ""
}
