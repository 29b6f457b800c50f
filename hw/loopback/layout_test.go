package loopback

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/proc"
)

func headerBytesOf(h *hot.Segment) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(h)), headerBytes)
}

// FuzzHeader parses arbitrary headers. What is accepted has all its parts in
// the file, apart from each other and aligned.
func FuzzHeader(f *testing.F) {
	c := Config{}.withDefaults()
	name, err := parseSockaddr(testAddress())
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range []Config{c, {RingLog2: 1, AttachCount: 1, BounceCount: 1, BounceBytes: 1, Stripes: 1}} {
		g := newGeometry(&c)
		h := g.header(&identity{cookie: 1, owner: process{1, 2, 3}, name: name})
		f.Add(headerBytesOf(&h), g.bytes)
		h.BounceOffset = ^uint64(0) - 63
		f.Add(headerBytesOf(&h), g.bytes)
		h.BounceOffset, h.RingLog2 = g.bounceOffset, 63
		f.Add(headerBytesOf(&h), g.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte, size uint64) {
		h := new(hot.Segment)
		if copy(headerBytesOf(h), b) != int(headerBytes) {
			return
		}
		check := func(size uint64) {
			g, id, err := parseHeader(h, size)
			if err != nil {
				if !errors.Is(err, errMalformed) {
					t.Errorf("%v", err)
				}
				return
			}
			type part struct{ begin, count, each uint64 }
			end := headerBytes
			for _, p := range []part{
				{g.ringOffset, hot.RxRings, ringBytes(g.ringLog2)},
				{g.attachOffset, uint64(g.attachCount), attachBytes},
				{g.bounceOffset, uint64(g.bounceCount), uint64(g.bounceStride)},
			} {
				if p.begin < end || p.begin%hot.CacheLine != 0 || p.each%hot.CacheLine != 0 ||
					p.count > size/p.each || p.begin > size-p.count*p.each {
					t.Fatalf("%+v accepted for %d bytes", g, size)
				}
				end = p.begin + p.count*p.each
			}
			if uint64(g.bounceBytes)+bounceHeader > uint64(g.bounceStride) || g.attachCount > MaxAttach {
				t.Fatalf("%+v accepted", g)
			}
			if id.name.n != sizeIPv4 && id.name.n != sizeIPv6 {
				t.Fatalf("name %+v accepted", id.name)
			}
		}
		check(size)
		h.Magic, h.Version, h.Bytes = hot.SegMagic, hot.SegVersion, size
		check(size)
	})
}

// FuzzSockaddr parses arbitrary addresses: equal text, equal address.
func FuzzSockaddr(f *testing.F) {
	f.Add(testAddress(), testAddress())
	f.Add(ipv6(1, 2, 3), ipv6(1, 2, 4))
	f.Add(testAddress(), AppendNumber(testAddress(), 7))
	f.Fuzz(func(t *testing.T, b, c []byte) {
		a1, err1 := parseSockaddr(b)
		a2, err2 := parseSockaddr(c)
		if err1 != nil || err2 != nil {
			return
		}
		again, err := parseSockaddr(a1.bytes())
		if err != nil || again != a1 {
			t.Errorf("%x is %x the second time, %v", b, again, err)
		}
		if (a1 == a2) != (a1.String() == a2.String()) {
			t.Errorf("%x and %x are %q and %q", b, c, a1.String(), a2.String())
		}
		if s := a1.String(); strings.ContainsAny(s, "/ \n\x00") || len(s) > 64 {
			t.Errorf("file name %q", s)
		}
	})
}

func ipv6(port uint16, flow, scope uint32) []byte {
	a := make([]byte, sizeIPv6)
	binary.NativeEndian.PutUint16(a, unix.AF_INET6)
	binary.BigEndian.PutUint16(a[2:], port)
	binary.NativeEndian.PutUint32(a[4:], flow)
	for i := range 16 {
		a[8+i] = 0xf0 + byte(i)
	}
	binary.NativeEndian.PutUint32(a[24:], scope)
	return a
}

func TestNames(t *testing.T) {
	padded := append([]byte{}, testAddress()...)
	plain, _ := parseSockaddr(padded)
	padded[15] = 7
	if a, err := parseSockaddr(padded); err != nil || a != plain {
		t.Errorf("padding counts: %x and %x, %v", a, plain, err)
	}
	for _, c := range []struct {
		raw  []byte
		text string
	}{
		{[]byte{2, 0, 0x12, 0x34, 10, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0}, "10.1.2.3:4660"},
		{ipv6(80, 5, 0), "[f0f1:f2f3:f4f5:f6f7:f8f9:fafb:fcfd:feff]:80"},
		{ipv6(80, 5, 3), "[f0f1:f2f3:f4f5:f6f7:f8f9:fafb:fcfd:feff%3]:80"},
		{AppendNumber(ipv6(80, 5, 3), MaxNumber), "[f0f1:f2f3:f4f5:f6f7:f8f9:fafb:fcfd:feff%3]:80.65535"},
		{AppendNumber([]byte{2, 0, 0, 9, 10, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0}, 1), "10.1.2.3:9.1"},
	} {
		a, err := parseSockaddr(c.raw)
		if err != nil || a.String() != c.text {
			t.Errorf("%x is %q, %v", c.raw, a.String(), err)
		}
	}
	for _, bad := range [][]byte{nil, {2}, {2, 0}, make([]byte, 16), ipv6(1, 2, 3)[:27], {1, 0, 'x', 0},
		AppendNumber(ipv6(1, 2, 3), MaxNumber+1)} {
		if _, err := parseSockaddr(bad); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

func TestAlive(t *testing.T) {
	dir := shmDir(t)
	h, err := thisHost(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !h.alive(h.self) || !h.alive(process{pid: h.self.pid}) {
		t.Error("this process is not alive")
	}
	for _, p := range []process{{}, {pid: h.self.pid, start: h.self.start + 1}, {pid: 1<<22 + 1}, {pid: 1 << 31}} {
		for _, p.pidns = range []uint64{0, h.pidns, elsewhere} {
			if h.alive(p) {
				t.Errorf("%+v is alive", p)
			}
		}
	}
	c := start(t, "hold", dir, nil, nil)
	c.line(t)
	s, err := proc.Read(uint32(c.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	p := process{uint32(c.cmd.Process.Pid), s.Start, h.pidns}
	if !h.alive(p) {
		t.Error("a running child is not alive")
	}
	c.cmd.Process.Kill()
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, int(p.pid), &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if h.alive(p) {
		t.Error("a zombie is alive")
	}
	c.cmd.Wait()
	if h.alive(p) {
		t.Error("an ended child is alive")
	}
	sweepNow(&h)
}
