package provider

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/race"
	"github.com/weft-fabric/weft/internal/regcache"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/rma"
)

// standInDevice is an RDMA device that moves bytes at once, of memory of this process and of dma-bufs, which it maps.
type standInDevice struct {
	hw.MemoryDomain
	noDMABuf bool
	err      error // of registrations
	refuses  *buf  // that alone has none, as its exporter does not let the device have it; nil: all have
	open     int
	moved    int
	flushes  int
	fault    error // of flushes
	refuse   error // of operations
	last     byte  // keys
	memory   map[byte]*standInMemory
}

type standInMemory struct {
	hw.Memory
	d   *standInDevice
	r   hw.Region
	buf *dmabuf.Mapping
	off uint64
	key byte
}

func (d *standInDevice) Attr() hw.MDAttr {
	a := hw.MDAttr{Caps: hw.MDLocal | hw.MDDMABuf, MaxKey: 1, Device: "stand-in"}
	if d.noDMABuf {
		a.Caps = hw.MDLocal
	}
	return a
}

func (d *standInDevice) Register(r hw.Region) (hw.Memory, error) {
	if d.err != nil {
		return nil, d.err
	}
	if d.refuses != nil && r.DMABuf != nil && sameFile(d.refuses.fd, r.DMABuf.FD) {
		return nil, hw.ErrNoDMABuf
	}
	d.last++
	m := &standInMemory{d: d, r: r, key: d.last}
	if b := r.DMABuf; b != nil {
		var err error
		if m.buf, err = dmabuf.Map(b.FD, true); err != nil {
			return nil, err
		}
		m.off = b.Offset
	}
	m.r.DMABuf = nil
	d.open++
	if d.memory == nil {
		d.memory = map[byte]*standInMemory{}
	}
	d.memory[m.key] = m
	return m, nil
}

// sameFile reports whether two descriptors are of one file.
func sameFile(a, b int) bool {
	var of [2]unix.Stat_t
	return unix.Fstat(a, &of[0]) == nil && unix.Fstat(b, &of[1]) == nil && of[0].Ino == of[1].Ino
}

func (d *standInDevice) UnpackKey(b []byte) (hw.RemoteKey, error) {
	return hw.RemoteKey{uint64(b[0])}, nil
}

func (m *standInMemory) Region() hw.Region        { return m.r }
func (m *standInMemory) PackKey(to []byte) []byte { return append(to, m.key) }

func (m *standInMemory) Close() error {
	m.d.open--
	delete(m.d.memory, m.key)
	if m.buf != nil {
		return m.buf.Close()
	}
	return nil
}

// at are n bytes from one on that segments of operations name by addr.
func (m *standInMemory) at(addr, n uint64) []byte {
	at := addr - uint64(uintptr(m.r.Addr))
	if m.buf != nil {
		return m.buf.Bytes()[m.off+at:][:n]
	}
	return mem.Bytes(addr, n)
}

// standInIface is the device's interface, and standInPeer the way to a peer that is this process.
type standInIface struct {
	hw.Iface
	d *standInDevice
}

func (i *standInIface) Memory() hw.MemoryDomain { return i.d }

type standInPeer struct {
	hw.Endpoint
	d *standInDevice
}

func (*standInPeer) Err() error { return nil }

func (p *standInPeer) Flush(scope hw.FlushScope, c *hw.Completion) (hw.Status, error) {
	if scope == hw.FlushLocal || c == nil {
		return hw.Done, hw.ErrInvalid
	}
	p.d.flushes++
	return hw.Done, p.d.fault
}

func (p *standInPeer) Fence() error { return nil }

func (p *standInPeer) PutZcopy(local []hw.Segment, addr uint64, k hw.RemoteKey, _ *hw.Completion) (hw.Status, error) {
	return p.move(local, addr, k, false)
}

func (p *standInPeer) GetZcopy(local []hw.Segment, addr uint64, k hw.RemoteKey, _ *hw.Completion) (hw.Status, error) {
	return p.move(local, addr, k, true)
}

func (p *standInPeer) move(local []hw.Segment, addr uint64, k hw.RemoteKey, get bool) (hw.Status, error) {
	if p.d.refuse != nil {
		return hw.Done, p.d.refuse
	}
	there := p.d.memory[byte(k[0])]
	for _, s := range local {
		n := uint64(s.Len)
		here := s.Memory.(*standInMemory).at(uint64(uintptr(s.Addr)), n)
		remote := there.at(uint64(uintptr(there.r.Addr))+addr-there.r.Base, n)
		if get {
			copy(here, remote)
		} else {
			copy(remote, here)
		}
		addr += n
		p.d.moved++
	}
	return hw.Done, nil
}

// stillWatch watches memory that does not change.
type stillWatch struct{}

func (stillWatch) Cover(uint64, uint64) error { return nil }
func (stillWatch) Uncover(uint64, uint64)     {}
func (stillWatch) Quiet(uint64) bool          { return true }
func (stillWatch) Stays(uint64, uint64) bool  { return true }
func (stillWatch) Fixed(uint64, uint64) bool  { return true }

func (stillWatch) Changes(_ *uint64, to []regcache.Range) ([]regcache.Range, bool) { return to, true }

// byStandIn is a way from x to itself by a device.
func (s *side) byStandIn(t testing.TB) (*standInDevice, *link, *path) {
	t.Helper()
	s.know(s)
	l, err := s.ep.base.linkOf(s.addr[s])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
	d := &standInDevice{}
	cache := regcache.New(d, regcache.Config{
		Devices: hmem.Allocations{}, Watch: stillWatch{}, Private: func(regcache.Range) bool { return true },
	})
	t.Cleanup(func() {
		cache.Close()
		if d.open != 0 {
			t.Errorf("%d registrations are left", d.open)
		}
	})
	over := &transport{
		Iface: &standInIface{d: d}, Number: 1,
		Attr: hw.Attr{
			Caps:        hw.CapPutZcopy | hw.CapGetZcopy | hw.CapOneSidedFree | hw.CapFlush,
			MaxPutZcopy: 1 << 20, MaxGetZcopy: 1 << 20, MaxIOV: 4, DeviceName: "stand-in",
		},
	}
	over.On = rma.Transport{Attr: &over.Attr, Number: 1, Device: rkey.Device{Domain: d, Cache: cache}}
	p := links.NewPath(&standInPeer{d: d}, over)
	p.Keys = &rkey.Peer{}
	return d, l, p
}

// know has the way know a region's key for the device, and returns the registration.
func (d *standInDevice) know(t testing.TB, p *path, m *MR, key uint64) {
	t.Helper()
	packed, _ := m.region.Export(&m.domain.published, d, nil)
	if packed == nil {
		t.Fatal("the region is not registered")
	}
	p.Keys.Find(key)
	p.Keys.Learn(key, hw.RemoteKey{uint64(packed[0])})
}

func hmemAllocated() *fi.Info {
	hints := hmemHints()
	hints.Domain = &fi.DomainAttr{MRMode: fi.MRAllocated}
	return hints
}

// TestDeviceBuffers has an RDMA device read and write memory of another device, here and there.
func TestDeviceBuffers(t *testing.T) {
	defer dmabuf.Pretend()()
	x := newBench(t, nil, hmemAllocated()).side(t)
	d, l, p := x.byStandIn(t)
	mine, theirs := x.dmabuf(t, 5), x.dmabuf(t, 6)
	local, remote := make([]byte, 8192), make([]byte, 8192)
	d.know(t, p, theirs.mr, 6)
	d.know(t, p, x.region(remote, 7, fi.RemoteRead|fi.RemoteWrite), 7)
	const n = 5000
	for i := range 8 {
		device, there, read := i&1 != 0, i&2 != 0, i&4 != 0
		data, moved := bufPattern(n, byte(i)), d.moved
		there7 := []fi.RMAIOVec{{Addr: 3, Len: n, Key: 7}}
		a := RMAArgs{IOV: iovOf(local[9 : 9+n]), Remote: there7, Dest: x.addr[x], Read: read}
		if device {
			a.IOV = mine.iov(t, 9, n)
		}
		if there {
			a.Remote[0].Key = 6
		}
		clear(local)
		clear(remote)
		mine.put(t, 0, make([]byte, 8192))
		theirs.put(t, 0, make([]byte, 8192))
		switch {
		case read && there:
			theirs.put(t, 3, data)
		case read:
			copy(remote[3:], data)
		case device:
			mine.put(t, 9, data)
		default:
			copy(local[9:], data)
		}
		op := a.operation()
		if err := accessOver(x.ep, &op, l, p, n, true); err != nil {
			t.Fatal(err)
		}
		if _, failed, ok := settle(t, x); !ok {
			t.Fatalf("%d: %+v", i, failed)
		}
		if d.moved != moved+1 {
			t.Errorf("%d: the device has moved %d pieces", i, d.moved-moved)
		}
		switch {
		case read && device:
			mine.want(t, 9, data)
		case !read && there:
			theirs.want(t, 3, data)
		case read && !bytes.Equal(local[9:9+n], data), !read && !bytes.Equal(remote[3:3+n], data):
			t.Errorf("%d: wrong bytes", i)
		}
	}
	if d.open != 5 { // these two regions, the dma-buf, and memory of the process with either right
		t.Errorf("%d registrations", d.open)
	}
	// Memory that is closed is registered no more.
	_ = mine.mr.Close()
	p.Via.On.Device.Cache.Buffers().Drop(uint64(theirs.iov(t, 0, 1)[0].Base))
	if _, err := p.Via.On.Device.Use(uint64(mineBase(mine)), 8, 0); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("memory of a region that is closed: %v", err)
	}
	_ = theirs.mr.Close()
}

// mineBase is where the memory of a dma-buf's region was.
func mineBase(b *buf) uintptr { return b.mr.region.Memory.Parts[0].Base }

// TestDeviceBuffersNot: what is not for an RDMA device goes as messages, which move the right bytes.
func TestDeviceBuffersNot(t *testing.T) {
	defer dmabuf.Pretend()()
	for what, set := range map[string]func(x *side, d *standInDevice){
		"the device takes none":  func(_ *side, d *standInDevice) { d.noDMABuf = true },
		"the device has no room": func(_ *side, d *standInDevice) { d.err = hw.ErrNoResource },
		"it refuses one":         func(_ *side, d *standInDevice) { d.err = hw.ErrNoDMABuf },
		"peer to peer is turned off": func(x *side, _ *standInDevice) {
			_ = x.ep.SetOpt(fi.OptHMEMP2P, uint64(fi.HMEMP2PDisabled))
		},
		"the way is turned off":       func(x *side, _ *standInDevice) { x.domain.cfg.TokenWays.RDMA = false },
		"nothing, and it goes by one": func(*side, *standInDevice) {},
	} {
		x := newBench(t, func(c *config.Config) { c.HMEMMapSize = 0 }, hmemAllocated()).side(t)
		d, l, p := x.byStandIn(t)
		mine := x.dmabuf(t, 5)
		set(x, d)
		p.Keys.Find(7)
		p.Keys.Learn(7, hw.RemoteKey{1})
		remote := []fi.RMAIOVec{{Len: 64, Key: 7}}
		a := rma.Operation{IOV: mine.iov(t, 0, 64), Remote: remote, Dest: x.addr[x], Listed: true}
		goes, err, alone := x.ep.base.rmas.ByDevice(&a, &l.Link, &p.Path, 64)
		if goes != (what == "nothing, and it goes by one") {
			t.Errorf("%s: by the device %v, %v", what, goes, err)
		}
		if errno := fi.ErrnoOf(alone); err != nil &&
			errno != map[bool]fi.Errno{true: fi.ENOMEM, false: fi.EOPNOTSUPP}[what == "the device has no room"] {
			t.Errorf("%s: by the device alone %v", what, errno)
		}
		_ = mine.mr.Close()
		p.Via.On.Device.Cache.Buffers().Close()
	}
}

// TestDeviceBuffersOneRefused: memory that its exporter does not let the device have goes as messages, on either
// side; all else by the device, before and after.
func TestDeviceBuffersOneRefused(t *testing.T) {
	defer dmabuf.Pretend()()
	x := newBench(t, func(c *config.Config) { c.HMEMMapSize = 0 }, hmemAllocated()).side(t)
	d, l, p := x.byStandIn(t)
	refused, other := x.dmabuf(t, 5), x.dmabuf(t, 6)
	d.refuses = refused
	p.Keys.Find(7)
	p.Keys.Learn(7, hw.RemoteKey{1})
	goes := func(b *buf) bool {
		remote := []fi.RMAIOVec{{Len: 64, Key: 7}}
		a := rma.Operation{IOV: b.iov(t, 0, 64), Remote: remote, Dest: x.addr[x], Listed: true}
		goes, err, _ := x.ep.base.rmas.ByDevice(&a, &l.Link, &p.Path, 64)
		if !goes && !errors.Is(err, hw.ErrNoDMABuf) {
			t.Error(err)
		}
		return goes
	}
	for range 2 {
		for _, b := range []*buf{refused, other} {
			packed, _ := b.mr.region.Export(&x.domain.published, d, nil)
			if want := b == other; goes(b) != want || (packed != nil) != want {
				t.Errorf("refused %v: by the device %v here, key %x", b == refused, goes(b), packed)
			}
		}
	}
	_ = refused.mr.Close()
	_ = other.mr.Close()
	p.Via.On.Device.Cache.Buffers().Close()
}

// TestDeviceBuffersToken: a token of memory of a device has the key of an RDMA device that reaches it.
func TestDeviceBuffersToken(t *testing.T) {
	defer dmabuf.Pretend()()
	x := newBench(t, nil, hmemHints()).side(t) // nothing is promised of pages
	for _, d := range []*standInDevice{{}, {noDMABuf: true}, {err: hw.ErrNoResource}} {
		b := x.dmabuf(t, 5)
		packed, _ := b.mr.region.Export(&x.domain.published, d, nil)
		if (packed != nil) != (d.err == nil && !d.noDMABuf) {
			t.Errorf("%+v: key %x", d, packed)
		}
		_ = b.mr.Close()
		if d.open != 0 {
			t.Errorf("%d registrations of a region that is closed", d.open)
		}
	}
}

// TestDeviceOpAllocs: an element that a device moves, of memory of a device or not, allocates nothing.
func TestDeviceOpAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has sync.Pool drop part of what it is given")
	}
	defer dmabuf.Pretend()()
	x := newBench(t, nil, hmemAllocated()).side(t)
	d, l, p := x.byStandIn(t)
	mine, theirs := x.dmabuf(t, 5), x.dmabuf(t, 6)
	d.know(t, p, theirs.mr, 6)
	local := make([]byte, 64)
	for what, iov := range map[string][]fi.IOVec{"device": mine.iov(t, 0, 64), "host": iovOf(local)} {
		a := rma.Operation{IOV: iov, Remote: []fi.RMAIOVec{{Len: 64, Key: 6}}, Dest: x.addr[x], Listed: true,
			Work: list.Work(5, 0)}
		idle := testing.AllocsPerRun(200, func() { x.ep.Progress() })
		n := testing.AllocsPerRun(200, func() {
			if err := accessOver(x.ep, &a, l, p, 64, true); err != nil {
				t.Fatal(err)
			}
			x.ep.Progress()
		})
		if n -= idle; n > 0 {
			t.Errorf("%s: %v allocations an element", what, n)
		}
	}
	_ = mine.mr.Close()
	_ = theirs.mr.Close()
	p.Via.On.Device.Cache.Buffers().Close()
}

// TestListRegistered: the memory of a list is registered once for a post, not once for each element, unless its
// elements are far from each other.
func TestListRegistered(t *testing.T) {
	for _, c := range []struct {
		stride uint64
		most   int
	}{{2 * 4096, 1}, {8 * 4096, 100}} {
		x := newBench(t, nil, hmemAllocated()).side(t)
		d, l, p := x.byStandIn(t)
		const count, size = 100, 4096
		local, remote := make([]byte, count*c.stride), make([]byte, 2*count*size)
		m := x.region(remote, 7, fi.RemoteRead|fi.RemoteWrite)
		r := x.opens(x.token(m))
		d.know(t, p, m, r.Info().Key)
		strided := x.list([]Piece{{
			Local: iovOf(local)[0].Base, LocalStride: c.stride, Remote: r, Addr: r.Info().Base, RemoteStride: 2 * size,
			Len: size, Count: count,
		}})
		for i := range count {
			copy(local[uint64(i)*c.stride:], bytes.Repeat([]byte{byte(i + 1)}, size))
		}
		before := l.Path()
		l.Set(p)
		made := d.last
		post(t, func() error { return strided.Write(1) }, x)
		wantDone(t, x, x, 1, fi.RMA|fi.Write)
		l.Set(before)
		if n := int(d.last - made); n > c.most || d.moved != count {
			t.Errorf("%d bytes apart: %d registrations, %d pieces moved", c.stride, n, d.moved)
		}
		for i := range count {
			if !bytes.Equal(remote[2*i*size:][:size], bytes.Repeat([]byte{byte(i + 1)}, size)) {
				t.Fatalf("element %d has other bytes", i)
			}
		}
	}
}

// TestListFlushed: a list that ends when the owner's memory has what was written has its path flushed once or twice,
// not for each element; one that does not, or reads, has it not flushed. A flush that fails fails the list.
func TestListFlushed(t *testing.T) {
	const count, size = 100, 64
	for what, c := range map[string]struct {
		args  ListArgs
		fault error
		want  fi.Errno
		most  int
	}{
		"delivered":         {ListArgs{Flags: fi.DeliveryComplete}, nil, 0, 2},
		"one element":       {ListArgs{Flags: fi.DeliveryComplete, Picks: []uint32{7}}, nil, 0, 1},
		"no more than sent": {ListArgs{Flags: fi.TransmitComplete}, nil, 0, 0},
		"read":              {ListArgs{Flags: fi.DeliveryComplete, Read: true}, nil, 0, 0},
		"lost":              {ListArgs{Flags: fi.DeliveryComplete}, hw.ErrPeerDead, fi.ECONNRESET, 2},
	} {
		x := newBench(t, nil, hmemAllocated()).side(t)
		d, l, p := x.byStandIn(t)
		d.fault = c.fault
		local, remote := make([]byte, 2*count*size), make([]byte, 2*count*size)
		m := x.region(remote, 7, fi.RemoteRead|fi.RemoteWrite)
		r := x.opens(x.token(m))
		d.know(t, p, m, r.Info().Key)
		strided := x.list([]Piece{{
			Local: iovOf(local)[0].Base, LocalStride: 2 * size, Remote: r, Addr: r.Info().Base, RemoteStride: 2 * size,
			Len: size, Count: count,
		}})
		before := l.Path()
		l.Set(p)
		post(t, func() error { return strided.Post(&c.args) }, x)
		x.ep.Progress()
		l.Set(before)
		entry, failed, ok := settle(t, x)
		if ok != (c.want == 0) || failed.Err != c.want || !ok && failed.Len != 0 {
			t.Errorf("%s: %+v, %+v", what, entry, failed)
		}
		if d.flushes > c.most || c.most != 0 && d.flushes == 0 || d.moved == 0 {
			t.Errorf("%s: %d flushes, at most %d; %d elements moved", what, d.flushes, c.most, d.moved)
		}
	}
}

// TestDeviceNoPiece: what a device whose limits leave nothing for an operation is given goes as messages.
func TestDeviceNoPiece(t *testing.T) {
	x := newBench(t, nil, hmemAllocated()).side(t)
	d, l, p := x.byStandIn(t)
	p.Via.Attr.MaxIOV = 0
	if _, err := x.ep.base.links.Connect(l); err != nil { // for messages
		t.Fatal(err)
	}
	local, remote := bufPattern(64, 1), make([]byte, 64)
	m := x.region(remote, 7, fi.RemoteRead|fi.RemoteWrite)
	for _, read := range []bool{false, true} {
		d.know(t, p, m, 7)
		a := rma.Operation{
			IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: 64, Key: 7}}, Dest: x.addr[x], Read: read,
		}
		if err := accessOver(x.ep, &a, l, p, 64, true); err != nil {
			t.Fatal(err)
		}
		if _, failed, ok := settle(t, x); !ok {
			t.Errorf("read %v: %+v", read, failed)
		}
		if !bytes.Equal(local, remote) || d.moved != 0 {
			t.Errorf("read %v: %d moved, or wrong bytes", read, d.moved)
		}
		clear(local)
	}
}
