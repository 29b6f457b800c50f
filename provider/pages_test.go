package provider

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/mem"
)

// hugeNow is how many KiB of memory are on huge pages, as the kernel has it. It polls
// at the mappings that memory is in, not at the process: the collector's heap goes to
// huge pages and back whenever it likes.
func hugeNow(t *testing.T, memory []byte) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("no account of huge pages: %v", err)
	}
	first := uintptr(mem.Address(memory))
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
