package nic

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Host is where a program would find what RDMA needs. Tests give others.
type Host struct {
	Sys, Dev string
	// Cache is the loader's list of libraries, Dirs where it searches besides.
	Cache string
	Dirs  []string
}

// ThisHost returns this host as programs see it that are started from this process.
func ThisHost() Host {
	dirs := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	return Host{Sys: Sysfs, Dev: "/dev", Cache: "/etc/ld.so.cache", Dirs: append(dirs, "/lib", "/usr/lib", "/lib64",
		"/usr/lib64")}
}

// verbsLibrary is what programs load for RDMA devices.
const verbsLibrary = "libibverbs.so.1"

// ErrNoRDMA says that there is no RDMA device.
var ErrNoRDMA = errors.New("no RDMA device on this host")

// Verbs reports whether a program could open an RDMA device, or the one of a name: nil, or
// what is in its way. It opens the device's file but, other than a program, does not load the
// library. Errors: ErrNoRDMA; fs.ErrNotExist where the device, the library or the device's
// file is missing; and what opening the file gives.
func (h Host) Verbs(device string) error {
	found, _ := filepath.Glob(filepath.Join(h.Sys, "class/infiniband/*")) // the pattern is well formed
	if len(found) == 0 {
		return ErrNoRDMA
	}
	if !h.hasLibrary(verbsLibrary) {
		return fmt.Errorf("%s is not installed: %w", verbsLibrary, fs.ErrNotExist)
	}
	links, err := Links()
	if err != nil {
		return err
	}
	err = fmt.Errorf("no RDMA device %s in this network namespace: %w", device, fs.ErrNotExist)
	for _, dir := range found {
		if device != "" && filepath.Base(dir) != device || !h.here(dir, links) {
			continue
		}
		if err = h.open(filepath.Base(dir)); err == nil {
			return nil
		}
	}
	return err
}

// hasLibrary reports whether the loader finds a library.
func (h Host) hasLibrary(name string) bool {
	for _, d := range h.Dirs {
		if exists(d, name) {
			return true
		}
	}
	cache, err := os.ReadFile(h.Cache)
	return err == nil && bytes.Contains(cache, append([]byte(name), 0))
}

// here reports whether a device is this network namespace's: an interface of it stands on the
// device, or a port is InfiniBand.
func (h Host) here(dir string, links map[string]Link) bool {
	ports, _ := filepath.Glob(filepath.Join(dir, "ports/*/link_layer")) // the pattern is well formed
	if slices.ContainsFunc(ports, func(p string) bool { return text(p) == "InfiniBand" }) {
		return true
	}
	for name := range links {
		if portOf(dir, name) != "" {
			return true
		}
	}
	return false
}

// open opens and closes the file by which programs use a device.
func (h Host) open(device string) error {
	files, _ := filepath.Glob(filepath.Join(h.Sys, "class/infiniband_verbs/uverbs*")) // the pattern is well formed
	for _, f := range files {
		if text(f, "ibdev") != device {
			continue
		}
		fd, err := unix.Open(filepath.Join(h.Dev, "infiniband", filepath.Base(f)), unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", filepath.Join(h.Dev, "infiniband", filepath.Base(f)), err)
		}
		return unix.Close(fd)
	}
	return fmt.Errorf("device %s has no file for programs (ib_uverbs): %w", device, fs.ErrNotExist)
}
