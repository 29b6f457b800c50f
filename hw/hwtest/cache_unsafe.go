package hwtest

import (
	"bytes"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/regcache"
)

// RunCache tests registrations that a cache keeps, on a backend whose interfaces
// can get: what a get reads, and where it lands, is the memory that is there now,
// whatever was at its addresses before.
func RunCache(t *testing.T, open Factory, watch regcache.Watch) {
	a, b := newNode(t, open), newNode(t, open)
	if need := hw.CapGetZcopy | hw.CapAMShort; a.Attr().Caps&need != need {
		t.Skip("the backend has no gets")
	}
	ep := a.connect(b)
	theirs := regcache.New(b.Memory(), regcache.Config{Watch: watch})
	ours := regcache.New(a.Memory(), regcache.Config{Watch: watch})
	t.Cleanup(theirs.Close)
	t.Cleanup(ours.Close)
	from, into := newMapping(t), newMapping(t)
	for name, replace := range map[string]func(*mapping){
		"unmapped": (*mapping).unmap, "given back": (*mapping).giveBack, "replaced": (*mapping).replace,
		"nothing": func(*mapping) {},
	} {
		t.Run(name, func(t *testing.T) {
			for round := range byte(3) {
				for i := range from.b {
					from.b[i], into.b[i] = round+byte(i), 0xEE
				}
				get(t, a, b, ep, theirs, ours, from.b, into.b)
				if !bytes.Equal(from.b, into.b) {
					t.Fatalf("round %d: other bytes than the peer has", round)
				}
				replace(from)
				replace(into)
			}
		})
	}
	for name, s := range map[string]regcache.Stats{"source": theirs.Stats(), "destination": ours.Stats()} {
		if s.Hits == 0 || s.Dropped == 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// get reads from of b's process into into of a's.
func get(t *testing.T, a, b *node, ep hw.Endpoint, theirs, ours *regcache.Cache, from, into []byte) {
	t.Helper()
	source, err := theirs.Get(unsafe.Pointer(&from[0]), len(from), hw.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Put(source)
	target, err := ours.Get(unsafe.Pointer(&into[0]), len(into), hw.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Put(target)
	key := b.key(source.Memory())
	local := []hw.Segment{{Addr: unsafe.Pointer(&into[0]), Len: len(into), Memory: target.Memory()}}
	err = end(t, a, b, func(c *hw.Completion) (hw.Status, error) {
		return ep.(hw.OneSided).GetZcopy(local, uint64(uintptr(unsafe.Pointer(&from[0]))), key, c)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// mapping is memory whose pages come and go, at one address.
type mapping struct {
	t testing.TB
	b []byte
}

func newMapping(t testing.TB) *mapping {
	b, err := unix.Mmap(-1, 0, 16*unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	m := &mapping{t, b}
	t.Cleanup(func() { _ = unix.Munmap(m.b) })
	return m
}

// call makes a system call on n bytes of the mapping.
func (m *mapping) call(trap uintptr, n int, args ...uintptr) {
	var a [4]uintptr
	copy(a[:], args)
	if _, _, e := unix.Syscall6(trap, uintptr(unsafe.Pointer(&m.b[0])), uintptr(n), a[0], a[1], a[2], a[3]); e != 0 {
		m.t.Fatalf("system call %d: %v", trap, e)
	}
}

func (m *mapping) mapAgain(n int) {
	m.call(unix.SYS_MMAP, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_FIXED, ^uintptr(0),
		0)
}

func (m *mapping) unmap() {
	m.call(unix.SYS_MUNMAP, len(m.b))
	m.mapAgain(len(m.b))
}

func (m *mapping) giveBack() { m.call(unix.SYS_MADVISE, len(m.b), unix.MADV_DONTNEED) }
func (m *mapping) replace()  { m.mapAgain(len(m.b) / 2) }
