package verbs

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv/null"
)

// nullDomain is a memory domain of no device, and what it has logged. old: the library has no call for dma-bufs.
func nullDomain(t testing.TB, old bool) (d *MemoryDomain, lines *[]string) {
	t.Helper()
	pd, undo := null.PD(old)
	t.Cleanup(undo)
	lines = new([]string)
	d = &MemoryDomain{dev: Device{Name: "null0"}, pd: pd, logf: func(format string, a ...any) {
		*lines = append(*lines, fmt.Sprintf(format, a...))
	}}
	return d, lines
}

// named is an address at which nothing is.
func named(addr uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// TestDMABuf: memory of another device is registered by its dma-buf, under the address that the device is to know it
// by; peers' keys and local segments have that.
func TestDMABuf(t *testing.T) {
	d, lines := nullDomain(t, false)
	d.probeDMABuf()
	if d.Attr().Caps&hw.MDDMABuf == 0 || len(*lines) != 0 {
		t.Fatalf("the device is taken for one without dma-bufs: %q", *lines)
	}
	fd := int(os.Stdin.Fd())
	const name, at = 1<<63 | 0x5000_0000_1000, 0x5000_0000_1000
	r := hw.Region{Addr: named(name), Len: 8192, Access: hw.LocalWrite | hw.RemoteRead | hw.RemoteWrite, Base: 7,
		DMABuf: &hw.DMABuf{FD: fd, Offset: 4096, At: at}}
	before := null.Regions()
	registered, err := d.Register(r)
	if err != nil {
		t.Fatal(err)
	}
	rights := uint32(ibv.LocalWrite | ibv.RemoteRead | ibv.RemoteWrite)
	want := null.DMABuf{FD: fd, Offset: 4096, Len: 8192, At: at, Access: rights}
	if got := null.LastDMABuf(); got != want {
		t.Errorf("registered as %+v, want %+v", got, want)
	}
	m := registered.(*Memory)
	k, err := unpackKey(m.PackKey(nil))
	if err != nil {
		t.Fatal(err)
	}
	if addr, key, err := remote(k, 7+100, 50, hw.RemoteWrite); err != nil || addr != at+100 || key != m.mr.RKey {
		t.Errorf("peers write at %#x with key %d, %v", addr, key, err)
	}
	var room [ibv.MaxSGE]ibv.SGE
	segment := hw.Segment{Addr: named(name + 8000), Len: 192, Memory: m}
	used, n, err := (&Endpoint{}).pieces(room[:0], []hw.Segment{segment}, 4, true)
	if err != nil || used != 1 || n != 192 || room[0] != (ibv.SGE{Addr: at + 8000, Len: 192, LKey: m.mr.LKey}) {
		t.Errorf("%d pieces of %d bytes, %+v, %v", used, n, room[0], err)
	}
	for _, s := range []hw.Segment{
		{Addr: named(name + 8000), Len: 193, Memory: m}, {Addr: named(name - 1), Len: 1, Memory: m},
		{Addr: named(at), Len: 1, Memory: m},
	} {
		if _, _, err := (&Endpoint{}).pieces(room[:0], []hw.Segment{s}, 4, true); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%d bytes at %p: %v", s.Len, s.Addr, err)
		}
	}
	if err := m.Close(); err != nil || null.Regions() != before {
		t.Errorf("%v, %d registrations are left", err, null.Regions()-before)
	}
}

// TestDMABufRefused: what is said of a dma-buf that the device does not take, and what is left of it. What does not
// support this device, or is not supported by it, is that dma-buf's exporter; the device takes others.
func TestDMABufRefused(t *testing.T) {
	fd := int(os.Stdin.Fd())
	for _, c := range []struct {
		errno  unix.Errno
		offset uint64
		fd     int
		want   error
	}{
		{unix.EOPNOTSUPP, 0, fd, hw.ErrNoDMABuf},
		{524, 0, fd, hw.ErrNoDMABuf}, // ENOTSUPP of the kernel
		{unix.EPROTONOSUPPORT, 0, fd, hw.ErrNoDMABuf},
		{unix.ENOSYS, 0, fd, hw.ErrNoDMABuf},
		{unix.ENOMEM, 0, fd, hw.ErrNoResource},
		{unix.EINVAL, 0, fd, hw.ErrInvalid},
		{unix.EACCES, 0, fd, hw.ErrPermission},
		{0, 1, fd, hw.ErrInvalid},  // as far into a page as the address is
		{0, 0, -1, hw.ErrInvalid},  // no descriptor
		{0, 0, 1e6, hw.ErrInvalid}, // nor this
	} {
		d, lines := nullDomain(t, false)
		d.probeDMABuf()
		before := null.Regions()
		null.RefuseDMABufs(int(c.errno))
		for range 2 {
			r := hw.Region{Addr: named(1 << 63), Len: 4096, Access: hw.RemoteRead,
				DMABuf: &hw.DMABuf{FD: c.fd, Offset: c.offset, At: 1 << 20}}
			if m, err := d.Register(r); !errors.Is(err, c.want) || m != nil {
				t.Errorf("%+v: %v, %v", c, m, err)
			}
		}
		if null.Regions() != before {
			t.Errorf("%+v: %d registrations are left", c, null.Regions()-before)
		}
		null.RefuseDMABufs(0)
		m, err := d.Register(hw.Region{Addr: named(1 << 62), Len: 4096, DMABuf: &hw.DMABuf{FD: fd, At: 1 << 20}})
		if err != nil || d.Attr().Caps&hw.MDDMABuf == 0 || len(*lines) != 0 {
			t.Fatalf("%+v: of another %v, %q", c, err, *lines)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDMABufAbsent: a library without the call, a kernel and a device that take none are found when the device is
// opened, and said once.
func TestDMABufAbsent(t *testing.T) {
	for _, errno := range []unix.Errno{0, unix.EOPNOTSUPP, unix.EPROTONOSUPPORT, unix.ENOSYS, unix.EPERM} {
		d, lines := nullDomain(t, errno == 0)
		null.RefuseDMABufs(int(errno))
		d.probeDMABuf()
		// One whose descriptors are judged first takes them.
		if takes := d.Attr().Caps&hw.MDDMABuf != 0; takes != (errno == unix.EPERM) || takes == (len(*lines) == 1) {
			t.Errorf("%v: takes dma-bufs %v, %q", errno, takes, *lines)
		} else if takes {
			continue
		} else if !strings.Contains((*lines)[0], "null0") {
			t.Errorf("%v: %q", errno, *lines)
		}
		r := hw.Region{Addr: named(1 << 63), Len: 4096, DMABuf: &hw.DMABuf{FD: int(os.Stdin.Fd()), At: 1 << 20}}
		if _, err := d.Register(r); !errors.Is(err, hw.ErrNoDMABuf) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}
