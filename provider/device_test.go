package provider

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/hmem"
)

const bufBytes = 2 << 20

// buf is a registered dma-buf, for which a memory file stands.
type buf struct {
	fd int
	mr *MR
}

const bufBase, bufOffset = 0x7000_0000_0000, 4096

// dmabuf registers a dma-buf that the application says to have mapped at bufBase, from bufOffset on.
func (s *side) dmabuf(t *testing.T, key uint64) *buf {
	t.Helper()
	fd, err := unix.MemfdCreate("weft-device-test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Ftruncate(fd, bufOffset+bufBytes); err != nil {
		t.Fatal(err)
	}
	m, err := s.domain.RegMR(&fi.MRAttr{
		DMABuf: &fi.DMABuf{FD: fd, Offset: bufOffset, Len: bufBytes, Base: bufBase}, RequestedKey: key,
		Access: fi.Send | fi.Recv | fi.Read | fi.Write | fi.RemoteRead | fi.RemoteWrite,
	}, fi.MRDMABuf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return &buf{fd, m}
}

// iov names n bytes of it from byte at on, as transfers take it.
func (b *buf) iov(t *testing.T, at, n int) []fi.IOVec {
	t.Helper()
	v := []fi.IOVec{{Base: uintptr(bufBase + bufOffset + at), Len: uint64(n)}}
	if err := b.mr.domain.Translate(v, []uint64{b.mr.Desc()}); err != nil {
		t.Fatal(err)
	}
	if !hmem.OnDevice(uint64(v[0].Base)) || hmem.AppAddress(uint64(v[0].Base)) != uint64(bufBase+bufOffset+at) {
		t.Fatalf("translated to %#x", v[0].Base)
	}
	return v
}

func (b *buf) put(t *testing.T, at int, data []byte) {
	t.Helper()
	if n, err := unix.Pwrite(b.fd, data, int64(bufOffset+at)); n != len(data) {
		t.Fatal(n, err)
	}
}

func (b *buf) want(t *testing.T, at int, data []byte) {
	t.Helper()
	got := make([]byte, len(data))
	if n, err := unix.Pread(b.fd, got, int64(bufOffset+at)); n != len(data) {
		t.Fatal(n, err)
	}
	if !bytes.Equal(got, data) {
		t.Fatalf("%d bytes at %d differ", len(data), at)
	}
}

func bufPattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7+i>>8) ^ seed
	}
	return b
}

// fragments is how many a side has received.
func fragments(s *side) uint64 {
	return *(*uint64)(pointerAt(uint64(s.ep.base.stats.RxLine() + 8*stats.RxFragments)))
}

func hmemHints() *fi.Info { return &fi.Info{Caps: fi.Msg | fi.Tagged | fi.RMA | fi.Atomic | fi.HMEM} }

// TestDMABufMessages sends between dma-bufs, by mapping the sender's, in
// fragments, and in one piece.
func TestDMABufMessages(t *testing.T) {
	defer dmabuf.Pretend()()
	for _, least := range []int{0, 64 << 10} {
		t.Run(fmt.Sprint("mapped from ", least), func(t *testing.T) {
			b := newBench(t, func(c *config.Config) { c.HMEMMapSize = least }, hmemHints())
			x, y := b.side(t), b.side(t)
			x.know(y)
			from, to := x.dmabuf(t, 1), y.dmabuf(t, 2)
			// none between an eager message and a mapped one
			for i, n := range []int{1, 100, 200, 8000, 100_000, bufBytes - 3} {
				data := bufPattern(n, byte(i))
				from.put(t, 3, data)
				recv := RecvArgs{IOV: to.iov(t, 1, n), Src: fi.AddrUnspec, Tag: uint64(i), Tagged: true}
				if i%2 == 0 {
					post(t, func() error { return y.ep.PostRecv(&recv) }, x, y)
				}
				post(t, func() error {
					return x.ep.Send(&SendArgs{IOV: from.iov(t, 3, n), Dest: x.addr[y], Tag: uint64(i), Tagged: true})
				}, x, y)
				if i%2 != 0 {
					y.ep.Progress() // now it is unexpected
					post(t, func() error { return y.ep.PostRecv(&recv) }, x, y)
				}
				e, failed, ok := settle(t, y, x)
				if !ok || e.Len != uint64(n) || e.Buf != bufBase+bufOffset+1 {
					t.Fatalf("%d bytes: %+v %+v", n, e, failed)
				}
				if _, failed, ok := settle(t, x, y); !ok {
					t.Fatalf("%d bytes: %+v", n, failed)
				}
				to.want(t, 1, data)
			}
			if got := fragments(y); (got == 0) != (least != 0) {
				t.Errorf("%d fragments", got)
			}
		})
	}
}

// TestDMABufOneSided has peers read, write and add in a dma-buf.
func TestDMABufOneSided(t *testing.T) {
	defer dmabuf.Pretend()()
	b := newBench(t, nil, hmemHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	local, remote := x.dmabuf(t, 1), y.dmabuf(t, 2)
	for i, n := range []int{8, 5000, 300_000} {
		data := bufPattern(n, byte(i))
		local.put(t, 16, data)
		a := RMAArgs{IOV: local.iov(t, 16, n), Remote: []fi.RMAIOVec{{Addr: 5, Len: uint64(n), Key: 2}},
			Dest: x.addr[y], Flags: fi.DeliveryComplete}
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
		if _, failed, ok := settle(t, x, y); !ok {
			t.Fatalf("write: %+v", failed)
		}
		remote.want(t, 5, data)
		a.Read, a.IOV = true, local.iov(t, 1<<20, n)
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
		if _, failed, ok := settle(t, x, y); !ok {
			t.Fatalf("read: %+v", failed)
		}
		local.want(t, 1<<20, data)
	}
	word := binary.LittleEndian.AppendUint64(nil, 40)
	remote.put(t, 64, word)
	local.put(t, 0, binary.LittleEndian.AppendUint64(nil, 2))
	add := AtomicArgs{Kind: atomics.Fetch, Op: fi.OpSum, Datatype: fi.Uint64, Operand: local.iov(t, 0, 8),
		Result: local.iov(t, 8, 8),
		Remote: []fi.RMAIOVec{{Addr: 64, Len: 8, Key: 2}}, Dest: x.addr[y]}
	post(t, func() error { return x.ep.Atomic(&add) }, x, y)
	if _, failed, ok := settle(t, x, y); !ok {
		t.Fatalf("atomic: %+v", failed)
	}
	local.want(t, 8, word)
	remote.want(t, 64, binary.LittleEndian.AppendUint64(nil, 42))
}

// TestDMABufClosed uses a region that is gone, and registers what is none.
func TestDMABufClosed(t *testing.T) {
	defer dmabuf.Pretend()()
	b := newBench(t, nil, hmemHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	from := x.dmabuf(t, 1)
	stale := from.iov(t, 0, 100)
	attr := fi.MRAttr{DMABuf: &fi.DMABuf{FD: from.fd, Offset: bufOffset + 1, Len: bufBytes}}
	for what, c := range map[string]struct {
		change func(d *fi.DMABuf)
		want   fi.Errno
	}{
		"beyond its end": {func(*fi.DMABuf) {}, fi.EINVAL},
		"empty":          {func(d *fi.DMABuf) { d.Len = 0 }, fi.EINVAL},
		"no descriptor":  {func(d *fi.DMABuf) { d.FD = -1 }, fi.EBADF},
	} {
		d := *attr.DMABuf
		c.change(&d)
		_, err := b.domain.RegMR(&fi.MRAttr{DMABuf: &d}, fi.MRDMABuf)
		wantErrno(t, err, c.want, what)
	}
	_, err := b.domain.RegMR(&fi.MRAttr{}, fi.MRDMABuf)
	wantErrno(t, err, fi.EINVAL, "no dma-buf")
	v := []fi.IOVec{{Base: bufBase + bufOffset + bufBytes - 8, Len: 9}}
	wantErrno(t, b.domain.Translate(v, []uint64{from.mr.Desc()}), fi.EINVAL, "beyond the region")
	if err := from.mr.Close(); err != nil {
		t.Fatal(err)
	}
	wantErrno(t, b.domain.Translate(v, []uint64{from.mr.Desc()}), fi.EINVAL, "closed region")
	send := SendArgs{IOV: stale, Dest: x.addr[y]}
	for end := 0; !errors.Is(err, fi.EIO); end++ {
		if err = x.ep.Send(&send); err == nil || end > 1000 {
			t.Fatalf("sent from a closed region: %v", err)
		}
		x.ep.Progress()
		y.ep.Progress()
	}
	if x, ok := b.domain.mappings.Exported(uint64(stale[0].Base), 100); ok {
		t.Errorf("memory of a closed region is shared: %+v", x)
	}
}
