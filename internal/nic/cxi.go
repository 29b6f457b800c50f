package nic

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// cxiLibrary is what programs load for the NICs of Slingshot.
const cxiLibrary = "libcxi.so.1"

// ErrNoCXI says that there is no NIC of Slingshot.
var ErrNoCXI = errors.New("no NIC of Slingshot on this host")

// CXI reports whether a program could open a NIC of Slingshot, or the one of a name: nil, or what is in its way. It
// opens the NIC's file but, other than a program, does not load the library, so it does not know services. Errors:
// ErrNoCXI; fs.ErrNotExist where the NIC, the library or the file is missing; and what opening the file gives.
func (h Host) CXI(device string) error {
	found, _ := filepath.Glob(filepath.Join(h.Sys, "class/cxi/*")) // the pattern is well formed
	if len(found) == 0 {
		return ErrNoCXI
	}
	if !h.hasLibrary(cxiLibrary) {
		return fmt.Errorf("%s is not installed: %w", cxiLibrary, fs.ErrNotExist)
	}
	err := fmt.Errorf("no NIC %s: %w", device, fs.ErrNotExist)
	for _, dir := range found {
		name := filepath.Base(dir)
		if device != "" && name != device {
			continue
		}
		fd, openErr := unix.Open(filepath.Join(h.Dev, name), unix.O_RDWR|unix.O_CLOEXEC, 0)
		if openErr == nil {
			return unix.Close(fd)
		}
		err = fmt.Errorf("open %s: %w", filepath.Join(h.Dev, name), openErr)
	}
	return err
}
