package provider

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// hugeNow is how many KiB of memory are on huge pages, as the kernel has it. It looks
// at the mappings that memory is in, not at the process: the collector's heap goes to
// huge pages and back whenever it likes.
func hugeNow(t *testing.T, memory []byte) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("no account of huge pages: %v", err)
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	known, inside, sum := false, false, 0
	for line := range strings.Lines(string(text)) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = from < first+uintptr(len(memory)) && first < to
		}
		if v, ok := strings.CutPrefix(line, "AnonHugePages:"); ok && inside {
			kib := 0
			if _, err := fmt.Sscanf(v, "%d kB", &kib); err != nil {
				t.Fatalf("the kernel's %q: %v", line, err)
			}
			known, sum = true, sum+kib
		}
	}
	if !known {
		t.Skip("a kernel without huge pages")
	}
	return sum
}

// TestHugeSparse: memory of which little is there is not put on huge pages, which would bring the
// rest: not when it is used often, nor when it is registered. When most of it is there, it is.
func TestHugeSparse(t *testing.T) {
	const places = 8
	defer func(g *hugeGrowth) { growth = g }(growth)
	growth = &hugeGrowth{limit: func() int { return hugePage / 2 }} // less than any of them needs
	memory, err := unix.Mmap(-1, 0, (places+1)*hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	_ = unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0)
	first := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	skip := (hugePage - first%hugePage) % hugePage
	memory, first = memory[skip:skip+places*hugePage], first+skip
	touch := func(n uint64) {
		for at := uint64(0); at < places*hugePage; at += hugePage {
			for k := uint64(0); k < n; k += 4096 {
				memory[at+k] = 1
			}
		}
	}
	there := func() (n int) {
		pages := make([]byte, len(memory)/os.Getpagesize())
		if err := resident(first, pages); err != nil {
			t.Fatal(err)
		}
		for _, v := range pages {
			n += int(v&1) * os.Getpagesize()
		}
		return n
	}
	touch(64 << 10)
	_ = unix.Prctl(unix.PR_SET_THP_DISABLE, 0, 0, 0, 0)
	before := there()
	for at := first; at < first+uint64(len(memory)); at += hugePage {
		if err := collapse(at); !errors.Is(err, errSparse) {
			t.Fatalf("64 KiB in 2 MiB: %v", err)
		}
	}
	if n := ontoHugePages(first, uint64(len(memory))); n != 0 || there() != before {
		t.Errorf("a sparse region: %d bytes moved, %d bytes there, %d before", n, there(), before)
	}
	touch(leastDense)
	if err := collapse(first); errors.Is(err, errSparse) {
		t.Errorf("three quarters are there: %v", err)
	}
	if _, err := absent(first + uint64(len(memory)) + 1<<40); err == nil {
		t.Error("memory that is not mapped is there")
	}
}

// TestHugeGrowth: what a process may grow by is taken once for each page, again when pages are gone, and is a part of
// what it has.
func TestHugeGrowth(t *testing.T) {
	const places = 4
	memory, err := unix.Mmap(-1, 0, (places+1)*hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	own := ownMemory()
	for at := 0; at < len(memory); at += os.Getpagesize() {
		memory[at] = 1
	}
	if grown := ownMemory() - own; grown < len(memory)/2 {
		t.Errorf("the process has %d bytes more, of %d touched", grown, len(memory))
	}
	first := (uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))) + hugePage - 1) &^ (hugePage - 1)
	g := &hugeGrowth{limit: func() int { return 2 * hugePage }}
	for i, want := range []bool{true, true, true, false, false} {
		at := first + uint64(max(0, i-1))*hugePage // the first twice
		if got := g.take(at, hugePage-4096); got != want {
			t.Errorf("page %#x, the %d. time: taken %v", at, i, got)
		}
	}
	g.giveBack(first)
	if !g.take(first+2*hugePage, hugePage-4096) || g.take(first, hugePage-4096) {
		t.Error("what is given back can be taken once")
	}
	if err := unix.Munmap(memory); err != nil {
		t.Fatal(err)
	}
	if !g.take(first, hugePage-4096) || len(g.pages) != 1 || g.sum != hugePage-4096 {
		t.Errorf("the others are gone: %d bytes of %d pages", g.sum, len(g.pages))
	}
	if a, b := growthLimit(leastGrowth), growthLimit(1<<30); a != leastGrowth || b != 1<<30/growthShare {
		t.Errorf("a small process may grow by %d, one of 1 GiB by %d", a, b)
	}
}

// TestHugeRegions: a large region is on huge pages once it is registered, a small
// one is not, and its bytes stay what they were.
func TestHugeRegions(t *testing.T) {
	// Between two pages that cannot be read, so that it is a mapping of its own.
	page := os.Getpagesize()
	whole, err := unix.Mmap(-1, 0, 8<<20+2*page, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(whole) }()
	memory := whole[page : len(whole)-page]
	if err := unix.Mprotect(memory, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	// None is there by chance, and none asks the kernel's own thread for them, which
	// would be at it at once (MADV_HUGEPAGE is the only way back from MADV_NOHUGEPAGE).
	_ = unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range memory {
		memory[i] = byte(r.Uint32())
	}
	_ = unix.Prctl(unix.PR_SET_THP_DISABLE, 0, 0, 0, 0)
	want := bytes.Clone(memory)
	b := newBench(t, func(c *config.Config) { c.HugeRegionSize = 4 << 20 }, rmaHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	before := hugeNow(t, memory)
	y.region(memory[:3<<20], 1, fi.RemoteRead)
	if now := hugeNow(t, memory); now != before {
		t.Errorf("a small region: %d KiB on huge pages, %d before", now, before)
	}
	y.region(memory, 2, fi.RemoteRead)
	if now := hugeNow(t, memory); now == before {
		t.Skipf("this kernel puts no memory on huge pages: %d KiB", now)
	}
	got := make([]byte, len(memory))
	a := RMAArgs{IOV: iovOf(got), Remote: []fi.RMAIOVec{{Len: uint64(len(got)), Key: 2}}, Dest: x.addr[y], Read: true}
	post(t, func() error { return x.ep.RMA(&a) }, x, y)
	settle(t, x, y)
	if !bytes.Equal(memory, want) || !bytes.Equal(got, want) {
		t.Error("the memory has changed")
	}
}
