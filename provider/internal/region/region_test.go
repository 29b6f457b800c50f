package region

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/provider/internal/hmem"
)

// owner is what has a region. Each has an address of its own.
type owner struct{ _ byte }

// attr are the attributes of a region of parts of so many bytes, each at the next 64 KiB.
func attr(access uint64, lengths ...uint64) *fi.MRAttr {
	a := &fi.MRAttr{Access: access}
	for i, n := range lengths {
		a.IOV = append(a.IOV, fi.IOVec{Base: uintptr(i+1) << 16, Len: n})
	}
	return a
}

// made is a region with attributes.
func made(t *testing.T, a *fi.MRAttr, flags uint64, o Options) *Region[owner] {
	t.Helper()
	r := &Region[owner]{Owner: &owner{}}
	if err := r.Init(a, flags, &o); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCheck has each reason why attributes are refused, and what is accepted beside it.
func TestCheck(t *testing.T) {
	wraps := attr(0, 1)
	wraps.IOV[0] = fi.IOVec{Base: ^uintptr(0) - 7, Len: 9}
	atEnd := attr(0, 1)
	atEnd.IOV[0] = fi.IOVec{Base: ^uintptr(0) - 7, Len: 7}
	many := attr(0, make([]uint64, info.MRIOVLimit)...)
	dmabuf := &fi.MRAttr{DMABuf: &fi.DMABuf{}}
	for _, c := range []struct {
		what  string
		o     Options
		a     *fi.MRAttr
		flags uint64
		want  error
	}{
		{"one part", Options{}, attr(0, 8), 0, nil},
		{"no bytes", Options{}, attr(0, 0), 0, nil},
		{"no parts", Options{}, attr(0), 0, fi.EINVAL},
		{"most parts", Options{}, many, 0, nil},
		{"one part more", Options{}, attr(0, make([]uint64, info.MRIOVLimit+1)...), 0, fi.EINVAL},
		{"the end of the address space", Options{}, atEnd, 0, nil},
		{"beyond it", Options{}, wraps, 0, fi.EINVAL},
		{"flags of all", Options{}, attr(0, 8), fi.MRSingleUse | fi.RMAEvent, nil},
		{"persistent", Options{}, attr(0, 8), fi.RMAPmem, fi.EBADFLAGS},
		{"a key without keys", Options{}, attr(0, 8), fi.AuthKey, fi.EBADFLAGS},
		{"a key", Options{Keyed: true}, attr(0, 8), fi.AuthKey, nil},
		{"a kind of memory without devices", Options{}, attr(0, 8), fi.HMEMDeviceOnly, fi.EBADFLAGS},
		{"a kind of memory", Options{Device: true}, attr(0, 8), fi.HMEMDeviceOnly | fi.HMEMHostAlloc, nil},
		{"a dma-buf without devices", Options{}, dmabuf, fi.MRDMABuf, fi.EBADFLAGS},
		{"a dma-buf, which has no parts", Options{Device: true}, dmabuf, fi.MRDMABuf, nil},
		{"no dma-buf", Options{Device: true}, attr(0, 8), fi.MRDMABuf, fi.EINVAL},
		{"one part, matched", Options{Matched: true}, attr(0, 8), 0, nil},
		{"two parts, matched", Options{Matched: true}, attr(0, 8, 8), 0, fi.ENOSYS},
	} {
		if err := c.o.Check(c.a, c.flags); c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
	}
}

// TestInit: what a region has of its attributes. Those may change afterwards.
func TestInit(t *testing.T) {
	a := attr(fi.RemoteRead|fi.Recv|fi.RMA, 10, 20)
	r := made(t, a, fi.MRSingleUse, Options{})
	a.IOV[0].Base = 5
	if r.Rights != fi.RemoteRead|fi.Recv || !r.Single || r.Length != 30 || r.Base != 0 || r.InOnePart() ||
		r.OnDevice() {
		t.Errorf("%+v", r)
	}
	if parts := r.Memory.Parts; len(parts) != 2 || parts[0].Base != 1<<16 {
		t.Errorf("parts %v", parts)
	}
	if r := made(t, attr(0, 10), 0, Options{Addressed: true}); r.Base != 1<<16 || !r.InOnePart() || r.Single {
		t.Errorf("%+v", r)
	}
	kind := attr(0, 10)
	kind.Iface = fi.HMEMIface(77)
	if err := new(Region[owner]).Init(kind, 0, &Options{Device: true}); !errors.Is(err, fi.ENOSYS) {
		t.Errorf("a kind of memory that there is not: %v", err)
	}
	if err := new(Region[owner]).Init(kind, 0, &Options{}); err != nil {
		t.Errorf("a kind of memory that is not read: %v", err)
	}
}

// TestRights: which rights make a region one for peers, and what transports are given of them.
func TestRights(t *testing.T) {
	for _, c := range []struct {
		rights uint64
		remote bool
		want   hw.Access
	}{
		{fi.Send | fi.Recv | fi.Read | fi.Write | fi.Collective, false, 0},
		{fi.RemoteRead, true, hw.RemoteRead},
		{fi.RemoteWrite | fi.Write, true, hw.RemoteWrite},
		{fi.RemoteWrite | fi.RemoteRead, true, hw.RemoteRead | hw.RemoteWrite},
	} {
		r := made(t, attr(c.rights, 1), 0, Options{})
		if r.Remote() != c.remote || r.RemoteAccess() != c.want {
			t.Errorf("rights %#x: %v, %#x", c.rights, r.Remote(), r.RemoteAccess())
		}
	}
}

// TestCovers has ranges at both ends of a region, and such that wrap around.
func TestCovers(t *testing.T) {
	r := &Region[owner]{Base: 1000, Length: 100, Memory: hmem.Region{Parts: []fi.IOVec{{Base: 1 << 16, Len: 100}}}}
	for _, c := range []struct {
		addr, n uint64
		want    bool
	}{
		{1000, 100, true}, {1000, 0, true}, {1100, 0, true}, {1099, 1, true}, {1050, 50, true},
		{999, 1, false}, {999, 0, false}, {1000, 101, false}, {1100, 1, false}, {1101, 0, false},
		{1050, ^uint64(0), false}, {1001, ^uint64(0) - 500, false}, {^uint64(0), 2, false},
	} {
		if r.Covers(c.addr, c.n) != c.want {
			t.Errorf("%d bytes at %d: %v", c.n, c.addr, !c.want)
		}
	}
	if at := r.At(1099); at != 1<<16+99 {
		t.Errorf("the last byte is at %#x", at)
	}
}

// TestUnattended has each reason why peers cannot be given a region to access by themselves.
func TestUnattended(t *testing.T) {
	for _, c := range []struct {
		what  string
		a     *fi.MRAttr
		flags uint64
		want  bool
	}{
		{"one part", attr(fi.RemoteRead, 10), 0, true},
		{"two parts", attr(fi.RemoteRead, 10, 10), 0, false},
		{"no bytes", attr(fi.RemoteRead, 0), 0, false},
		{"a key for one operation", attr(fi.RemoteRead, 10), fi.MRSingleUse, false},
	} {
		r := made(t, c.a, c.flags, Options{Addressed: true})
		if r.Auth = "a"; r.Unattended("a") != c.want || r.Unattended("b") {
			t.Errorf("%s: not %v", c.what, c.want)
		}
	}
	r := made(t, attr(fi.RemoteWrite, 10), 0, Options{Addressed: true})
	if h := r.HW(); uintptr(h.Addr) != 1<<16 || h.Len != 10 || h.Access != hw.RemoteWrite || h.Base != 1<<16 {
		t.Errorf("registered as %+v", h)
	}
}
