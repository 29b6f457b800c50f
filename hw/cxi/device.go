package cxi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// Device is a NIC that this host has.
type Device struct {
	libcxi.DeviceInfo
	// Netdev is its network interface in this network namespace, "" if there is none.
	Netdev string
	// Up reports whether the link is up: the network interface's state, or what the library says without one.
	Up bool
	// NUMANode of the device, -1 if unknown.
	NUMANode int
}

// DefaultSysfs is where the kernel shows devices.
const DefaultSysfs = "/sys"

// Present reports whether the kernel shows a NIC, so that libcxi is not loaded where there is none.
func Present(sysfs string) bool {
	found, _ := filepath.Glob(filepath.Join(sysfs, "class/cxi/*")) // the pattern is well formed
	return len(found) > 0
}

// Devices lists the NICs with what sysfs says of them. library is the file to load. Errors: libcxi.ErrAbsent;
// hw.ErrUnreachable, wrapped, when there is none.
func Devices(sysfs, library string) ([]Device, error) {
	if err := libcxi.Load(library); err != nil {
		return nil, fmt.Errorf("cxi: %w: %w", err, hw.ErrUnreachable)
	}
	infos, err := libcxi.Devices()
	if err != nil {
		return nil, limit(err)
	}
	var list []Device
	for _, info := range infos {
		list = append(list, describe(sysfs, info))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("cxi: no NIC on this host: %w", hw.ErrUnreachable)
	}
	return list, nil
}

// describe adds what sysfs says.
func describe(sysfs string, info libcxi.DeviceInfo) Device {
	d := Device{DeviceInfo: info, Up: info.LinkUp, NUMANode: -1}
	links, _ := filepath.Glob(filepath.Join(sysfs, "class/net/*/device"))
	for _, link := range links {
		to, err := os.Readlink(link)
		if err != nil || filepath.Base(to) != info.PCI() {
			continue
		}
		d.Netdev = filepath.Base(filepath.Dir(link))
		d.Up = linkUp(filepath.Dir(link))
		if n, err := strconv.Atoi(text(filepath.Join(link, "numa_node"))); err == nil {
			d.NUMANode = n
		}
		if mbps, err := strconv.ParseUint(text(filepath.Join(filepath.Dir(link), "speed")), 10, 64); err == nil {
			d.LinkMbps = mbps
		}
	}
	return d
}

// linkUp reports whether the network interface in a folder of sysfs is up; one whose state is unknown is if it has a
// carrier.
func linkUp(folder string) bool {
	state := text(filepath.Join(folder, "operstate"))
	return state == "up" || state == "unknown" && text(filepath.Join(folder, "carrier")) == "1"
}

func text(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// choose finds a device by name, or the first whose link is up, else the first. Errors: hw.ErrUnreachable.
func choose(list []Device, name string) (Device, error) {
	for _, d := range list {
		if d.Name == name || name == "" && d.Up {
			return d, nil
		}
	}
	if name == "" {
		return list[0], nil
	}
	return Device{}, fmt.Errorf("cxi: no NIC %s on this host: %w", name, errors.Join(hw.ErrUnreachable, unix.ENODEV))
}

// openError names what stands between the process and a NIC.
func openError(err error, name string) error {
	switch {
	case is(err, unix.EACCES, unix.EPERM):
		return fmt.Errorf("cxi: %w: no permission for /dev/%s: %w", err, name, hw.ErrPermission)
	case is(err, unix.ENOENT, unix.ENODEV, unix.ENXIO):
		return fmt.Errorf("cxi: %w: no file /dev/%s: %w", err, name, hw.ErrUnreachable)
	}
	return limit(err)
}
