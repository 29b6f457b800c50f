package memwatch

import (
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/regcache"
)

func start(t testing.TB) Watch {
	t.Helper()
	w, err := Start()
	if err != nil {
		t.Skipf("the kernel does not report changes: %v", err)
	}
	return w
}

// mapped maps n pages of private memory, all of them present.
func mapped(t testing.TB, pages int, flags int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, pages*unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|flags)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(b); i += unix.Getpagesize() {
		b[i] = 1
	}
	return b
}

func rangeOf(b []byte) regcache.Range {
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	return regcache.Range{Start: at, End: at + uint64(len(b))}
}

// hit reports whether the changes since seen touch a range.
func hit(t *testing.T, w Watch, seen *uint64, r regcache.Range) bool {
	t.Helper()
	list, known := w.Changes(seen, nil)
	for _, c := range list {
		if c.Start < r.End && r.Start < c.End {
			return true
		}
	}
	return !known
}

// Flags of mremap(2).
const mremapMayMove, mremapFixed = 1, 2

func TestChanges(t *testing.T) {
	w := start(t)
	page := unix.Getpagesize()
	for name, change := range map[string]func(b []byte) error{
		"munmap":        unix.Munmap,
		"MADV_DONTNEED": func(b []byte) error { return unix.Madvise(b[page:], unix.MADV_DONTNEED) },
		"MADV_FREE":     func(b []byte) error { return unix.Madvise(b[:page], unix.MADV_FREE) },
		"mremap": func(b []byte) error { // to another place
			to := rangeOf(mapped(t, 4, unix.MAP_PRIVATE)).Start
			_, _, e := unix.Syscall6(unix.SYS_MREMAP, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(len(b)),
				mremapMayMove|mremapFixed, uintptr(to), 0)
			if e != 0 {
				return e
			}
			return nil
		},
		"MAP_FIXED": func(b []byte) error {
			_, _, e := unix.Syscall6(unix.SYS_MMAP, uintptr(unsafe.Pointer(&b[page])), uintptr(page), unix.PROT_READ,
				unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED, ^uintptr(0), 0)
			if e != 0 {
				return e
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := mapped(t, 4, unix.MAP_PRIVATE)
			r := rangeOf(b)
			if err := w.Cover(r.Start, r.End); err != nil {
				t.Fatal(err)
			}
			var seen uint64
			w.Changes(&seen, nil)
			b[0] = 2
			if hit(t, w, &seen, r) {
				t.Fatal("a change before there was one")
			}
			if err := change(b); err != nil {
				t.Fatal(err)
			}
			if !hit(t, w, &seen, r) {
				t.Error("nothing is notified")
			}
		})
	}
}

// TestUncovered: what is not watched any more makes no changes.
func TestUncovered(t *testing.T) {
	w := start(t)
	b := mapped(t, 2, unix.MAP_PRIVATE)
	r := rangeOf(b)
	if err := w.Cover(r.Start, r.End); err != nil {
		t.Fatal(err)
	}
	w.Uncover(r.Start, r.End)
	var seen uint64
	w.Changes(&seen, nil)
	if err := unix.Munmap(b); err != nil {
		t.Fatal(err)
	}
	if hit(t, w, &seen, r) {
		t.Error("notified")
	}
	if err := w.Cover(1<<12, 1<<13); err == nil {
		t.Error("memory that is not mapped can be watched")
	}
}

// TestChild: a process that is forked has no part in it, whatever it does to
// its copy of the memory.
func TestChild(t *testing.T) {
	w := start(t)
	b := mapped(t, 2, unix.MAP_PRIVATE)
	r := rangeOf(b)
	if err := w.Cover(r.Start, r.End); err != nil {
		t.Fatal(err)
	}
	var seen uint64
	w.Changes(&seen, nil)
	if out, err := exec.Command("/bin/true").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if hit(t, w, &seen, r) {
		t.Error("notified")
	}
	if err := unix.Munmap(b); err != nil {
		t.Fatal(err)
	}
}

// deviceMemory stands for a registration: it reads what the pages hold that were
// there when it was made.
type deviceMemory struct {
	hw.Memory
	region hw.Region
	stamp  uint64
}

func (m *deviceMemory) Region() hw.Region { return m.region }
func (m *deviceMemory) Close() error      { return nil }

type device struct{ hw.MemoryDomain }

func (device) Register(r hw.Region) (hw.Memory, error) {
	return &deviceMemory{region: r, stamp: *(*uint64)(r.Addr)}, nil
}

// TestCache has threads map, register and unmap memory over and over, in so
// small a space that they get each other's addresses. A registration that a
// cache finds must stand for the memory that is there now.
func TestCache(t *testing.T) {
	w := start(t)
	if runtime.NumCPU() < 2 {
		t.Log("with one processor this shows less")
	}
	c := regcache.New(device{}, regcache.Config{Watch: w})
	var next atomic.Uint64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 2000 {
				b := mapped(t, 4, unix.MAP_PRIVATE)
				word := (*uint64)(unsafe.Pointer(&b[0]))
				*word = next.Add(1)
				for range 1 + n%3 {
					e, err := c.Get(unsafe.Pointer(&b[0]), len(b), hw.RemoteRead)
					if err != nil {
						t.Error(err)
						return
					}
					if got := e.Memory().(*deviceMemory).stamp; got != *word {
						t.Errorf("the registration is of other pages: %d, not %d", got, *word)
						return
					}
					c.Put(e)
				}
				if err := unix.Munmap(b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s := c.Stats()
	if s.Hits == 0 || s.Dropped == 0 || s.Passing > s.Misses/2 {
		t.Errorf("%+v", s)
	}
	c.Close()
}

// TestMapping: a mapping neither stays nor is fixed.
func TestMapping(t *testing.T) {
	w := start(t)
	b := mapped(t, 1, unix.MAP_PRIVATE)
	if r := rangeOf(b); w.Stays(r.Start, r.End) || w.Fixed(r.Start, r.End) {
		t.Errorf("a mapping stays: %v, or is fixed: %v", w.Stays(r.Start, r.End), w.Fixed(r.Start, r.End))
	}
	_ = unix.Munmap(b)
}

// TestStays: the program's data and heap stay, and changes of the heap are known without a system call
// to the thread that makes them.
func TestStays(t *testing.T) {
	w := start(t)
	page := uint64(unix.Getpagesize())
	at, _, _ := unix.RawSyscall(unix.SYS_BRK, 0, 0, 0)
	first := (uint64(at) + page - 1) &^ (page - 1)
	end := first + 4*page
	if at, _, _ := unix.RawSyscall(unix.SYS_BRK, uintptr(end), 0, 0); uint64(at) != end {
		t.Skip("the heap cannot be made longer")
	}
	heap := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&first))), 4*page)
	for k := uint64(0); k < 4*page; k += page {
		heap[k] = 1
	}
	if !w.Stays(first, end) || w.Stays(first, end+page) {
		t.Error("the heap does not stay, or more than it does")
	}
	if err := w.Cover(first, end); err != nil {
		t.Fatal(err)
	}
	var seen uint64
	for name, change := range map[string]func(){
		"madvise": func() { _ = unix.Madvise(heap[:page], unix.MADV_DONTNEED) },
		"brk":     func() { _, _, _ = unix.RawSyscall(unix.SYS_BRK, uintptr(first+page), 0, 0) },
	} {
		if w.Changes(&seen, nil); !w.Quiet(seen) {
			t.Error("a change before there was one")
		}
		if change(); w.Quiet(seen) {
			t.Errorf("%s: no change", name)
		}
	}
	_, _, _ = unix.RawSyscall(unix.SYS_BRK, at, 0, 0)
}

func TestDataOf(t *testing.T) {
	stat := "7 (a) b) S" + strings.Repeat(" 1", fieldStartData-1)
	for text, want := range map[string]regcache.Range{
		stat + " 4096 8192 12288 0": {Start: 4096, End: 12288},
		stat + " 0 0 0 0":           unknown, // of another's process
		stat + " 4096 8192":         unknown,
		stat + " 16384 8192 12288":  unknown,
		stat + " x 8192 12288":      unknown,
		"":                          unknown,
		stat + " 4096 8192 99999999999999999999999999": unknown,
	} {
		if got := dataOf([]byte(text)); got != want {
			t.Errorf("%q: %#x, not %#x", text, got, want)
		}
	}
}

// inData is of the program's data.
var inData = [3 * 64 << 10]byte{0: 1, 3*64<<10 - 1: 1}

// TestFixed: the program's data is fixed, and kept though it cannot be watched.
func TestFixed(t *testing.T) {
	w := start(t)
	for k := range inData {
		inData[k] = 2 // so that its pages are the process's own
	}
	c := regcache.New(device{}, regcache.Config{Watch: w})
	defer c.Close()
	for range 3 {
		e, err := c.Get(unsafe.Pointer(&inData[0]), len(inData), hw.RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		c.Put(e)
	}
	if s := c.Stats(); s.Hits != 2 {
		t.Errorf("%+v", s)
	}
}

// TestShared: shared memory can go without a word, so it is not kept.
func TestShared(t *testing.T) {
	w := start(t)
	c := regcache.New(device{}, regcache.Config{Watch: w})
	defer c.Close()
	b := mapped(t, 4, unix.MAP_SHARED)
	for range 2 {
		e, err := c.Get(unsafe.Pointer(&b[0]), len(b), hw.RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		c.Put(e)
	}
	if s := c.Stats(); s.Hits != 0 || s.Passing != 2 {
		t.Errorf("%+v", s)
	}
	if err := unix.Munmap(b); err != nil && !errors.Is(err, unix.EINVAL) {
		t.Fatal(err)
	}
}

// stayWatch has it that all memory stays.
type stayWatch struct{ Watch }

func (stayWatch) Stays(uint64, uint64) bool { return true }

// BenchmarkHit is the cost of finding a registration of a mapping.
func BenchmarkHit(b *testing.B) { benchmarkHit(b, start(b)) }

// BenchmarkHitStays is the same of memory whose addresses stay.
func BenchmarkHitStays(b *testing.B) { benchmarkHit(b, stayWatch{start(b)}) }

func benchmarkHit(b *testing.B, w regcache.Watch) {
	c := regcache.New(device{}, regcache.Config{Watch: w})
	m := mapped(b, 256, unix.MAP_PRIVATE)
	for range b.N {
		e, err := c.Get(unsafe.Pointer(&m[0]), len(m), hw.RemoteRead)
		if err != nil {
			b.Fatal(err)
		}
		c.Put(e)
	}
	c.Close()
	_ = unix.Munmap(m)
}
