package nic

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCXI takes one thing after the other away from a host on which a program can use a NIC.
func TestCXI(t *testing.T) {
	without := func(path ...string) Host {
		root := tree(t, "class/cxi/cxi0/name=", "class/cxi/cxi1/name=", "dev/cxi0=", "lib/libcxi.so.1=",
			"cache=x\x00libcxi.so.1\x00/somewhere")
		for _, p := range path {
			if err := os.RemoveAll(filepath.Join(root, p)); err != nil {
				t.Fatal(err)
			}
		}
		return Host{Sys: root, Dev: filepath.Join(root, "dev"), Cache: filepath.Join(root, "cache"),
			Dirs: []string{filepath.Join(root, "lib")}}
	}
	for _, h := range []Host{without(), without("lib"), without("cache")} {
		if err := h.CXI(""); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		h      Host
		device string
		want   error
	}{
		{without("class/cxi"), "", ErrNoCXI},
		{without(), "cxi7", fs.ErrNotExist},
		{without(), "cxi1", unix.ENOENT},
		{without("lib", "cache"), "", fs.ErrNotExist},
		{without("dev/cxi0"), "", unix.ENOENT},
	} {
		if err := c.h.CXI(c.device); !errors.Is(err, c.want) {
			t.Errorf("NIC %q: %v, want %v", c.device, err, c.want)
		}
	}
}
