package nic

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestVerbs takes one thing after the other away from a host on which a program can use a device.
func TestVerbs(t *testing.T) {
	device := []string{
		"class/infiniband/rxe0/ports/1/link_layer=Ethernet", "class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0=lo",
		"class/infiniband_verbs/uverbs3/ibdev=rxe0", "class/infiniband_verbs/uverbs4/ibdev=other",
		"dev/infiniband/uverbs3=", "lib/libibverbs.so.1=", "cache=x\x00libibverbs.so.1\x00/somewhere",
	}
	without := func(path ...string) Host {
		root := tree(t, device...)
		for _, p := range path {
			if err := os.RemoveAll(filepath.Join(root, p)); err != nil {
				t.Fatal(err)
			}
		}
		return Host{Sys: root, Dev: filepath.Join(root, "dev"), Cache: filepath.Join(root, "cache"),
			Dirs: []string{filepath.Join(root, "lib")}}
	}
	for _, h := range []Host{without(), without("lib"), without("cache")} {
		if err := h.Verbs(""); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		h      Host
		device string
		want   error
	}{
		{without("class/infiniband"), "", ErrNoRDMA},
		{without(), "mlx5_0", fs.ErrNotExist},
		{without("lib", "cache"), "", fs.ErrNotExist},
		{without("class/infiniband/rxe0/ports"), "", fs.ErrNotExist},
		{without("class/infiniband_verbs/uverbs3"), "", fs.ErrNotExist},
		{without("dev/infiniband"), "rxe0", unix.ENOENT},
	} {
		if err := c.h.Verbs(c.device); !errors.Is(err, c.want) {
			t.Errorf("device %q: %v, want %v", c.device, err, c.want)
		}
	}
}
