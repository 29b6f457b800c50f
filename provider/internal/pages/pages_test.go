package pages

import (
	"errors"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestHugeSparse: memory of which little is there is not put on huge pages, which would bring the
// rest: not when it is used often, nor when it is registered. When most of it is there, it is.
func TestHugeSparse(t *testing.T) {
	const places = 8
	defer func(g *growth) { grown = g }(grown)
	grown = &growth{limit: func() int { return Size / 2 }} // less than any of them needs
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	memory, err := unix.Mmap(-1, 0, (places+1)*Size, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	_ = unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0)
	first := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	skip := (Size - first%Size) % Size
	memory, first = memory[skip:skip+places*Size], first+skip
	touch := func(n uint64) {
		for at := uint64(0); at < places*Size; at += Size {
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
	for at := first; at < first+uint64(len(memory)); at += Size {
		if err := collapse(at); !errors.Is(err, errSparse) {
			t.Fatalf("64 KiB in 2 MiB: %v", err)
		}
	}
	if n := Move(first, uint64(len(memory))); n != 0 || there() != before {
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
	memory, err := unix.Mmap(-1, 0, (places+1)*Size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
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
	first := (uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))) + Size - 1) &^ (Size - 1)
	g := &growth{limit: func() int { return 2 * Size }}
	for i, want := range []bool{true, true, true, false, false} {
		at := first + uint64(max(0, i-1))*Size // the first twice
		if got := g.take(at, Size-4096); got != want {
			t.Errorf("page %#x, the %d. time: taken %v", at, i, got)
		}
	}
	g.giveBack(first)
	if !g.take(first+2*Size, Size-4096) || g.take(first, Size-4096) {
		t.Error("what is given back can be taken once")
	}
	if err := unix.Munmap(memory); err != nil {
		t.Fatal(err)
	}
	if !g.take(first, Size-4096) || len(g.pages) != 1 || g.sum != Size-4096 {
		t.Errorf("the others are gone: %d bytes of %d pages", g.sum, len(g.pages))
	}
	if a, b := growthLimit(leastGrowth), growthLimit(1<<30); a != leastGrowth || b != 1<<30/growthShare {
		t.Errorf("a small process may grow by %d, one of 1 GiB by %d", a, b)
	}
}
