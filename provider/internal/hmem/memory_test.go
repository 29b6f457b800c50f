package hmem

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dmabuf"
)

// TestEnterRegion: memory of the process is where the application says, that of a dma-buf elsewhere.
func TestEnterRegion(t *testing.T) {
	defer dmabuf.Pretend()()
	list := []fi.IOVec{{Base: 0x1000, Len: 16}, {Base: 0x3000, Len: 8}}
	r, err := EnterRegion(&fi.MRAttr{IOV: list}, 0, false, limit)
	if err != nil || len(r.Parts) != 2 || r.Parts[1] != list[1] || r.App()[0] != list[0] || r.Named != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if _, ok := r.Translate(0x1000, 1); ok {
		t.Error("memory without names of its own is translated")
	}
	r.Leave(limit)

	fd, err := unix.MemfdCreate("weft-hmem-test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, bufOffset+bufBytes); err != nil {
		t.Fatal(err)
	}
	attr := &fi.MRAttr{DMABuf: &fi.DMABuf{FD: fd, Offset: bufOffset, Len: bufBytes, Base: bufBase}}
	if r, err = EnterRegion(attr, fi.MRDMABuf, true, limit); err != nil {
		t.Fatal(err)
	}
	const first = bufBase + bufOffset
	if r.DMABuf == nil || len(r.Shares) != 1 || !OnDevice(uint64(r.Parts[0].Base)) || r.App()[0].Base != first {
		t.Errorf("a dma-buf: %+v", r)
	}
	for _, c := range []struct {
		addr, n uint64
		want    bool
	}{{first, bufBytes, true}, {first + 8, 8, true}, {first + 1, bufBytes, false}, {first - 1, 1, false},
		{first + 8, ^uint64(0), false}} {
		at, ok := r.Translate(c.addr, c.n)
		if ok != c.want || ok && at != uint64(r.Parts[0].Base)+c.addr-first {
			t.Errorf("%d bytes at %#x: %#x, %v", c.n, c.addr, at, ok)
		}
	}
	r.Leave(limit)
	unused(t)
}

// TestEnterRegionRefused: kinds that are not known, and what a kind cannot have.
func TestEnterRegionRefused(t *testing.T) {
	list := []fi.IOVec{{Base: 0x1000, Len: 16}, {Base: 0x3000, Len: 8}}
	for what, c := range map[string]struct {
		attr  fi.MRAttr
		flags uint64
		want  fi.Errno
	}{
		"the process's own on a device": {fi.MRAttr{IOV: list}, fi.HMEMDeviceOnly, fi.EINVAL},
		"an unknown kind":               {fi.MRAttr{IOV: list, Iface: 77}, 0, fi.ENOSYS},
		"two dma-bufs":                  {fi.MRAttr{IOV: list}, fi.MRDMABuf, fi.EINVAL},
	} {
		if _, err := EnterRegion(&c.attr, c.flags, false, limit); fi.ErrnoOf(err) != c.want {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
}
