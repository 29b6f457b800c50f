package provider

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// hugeNow is how much of this process's private memory is on huge pages, as the kernel
// has it.
func hugeNow(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Skipf("no account of huge pages: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "AnonHugePages:"); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Skip("a kernel without huge pages")
	return ""
}

// TestHugeRegions: a large region is on huge pages once it is registered, a small
// one is not, and its bytes stay what they were.
func TestHugeRegions(t *testing.T) {
	memory, err := unix.Mmap(-1, 0, 8<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	_ = unix.Madvise(memory, unix.MADV_NOHUGEPAGE) // so that none is there by chance
	r := rand.New(rand.NewPCG(1, 2))
	for i := range memory {
		memory[i] = byte(r.Uint32())
	}
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE)
	want := bytes.Clone(memory)
	b := newBench(t, func(c *config.Config) { c.HugeRegionSize = 4 << 20 }, rmaHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	before := hugeNow(t)
	y.region(memory[:3<<20], 1, fi.RemoteRead)
	if now := hugeNow(t); now != before {
		t.Errorf("a small region: %s on huge pages, %s before", now, before)
	}
	y.region(memory, 2, fi.RemoteRead)
	if now := hugeNow(t); now == before {
		t.Skipf("this kernel puts no memory on huge pages: %s", now)
	}
	got := make([]byte, len(memory))
	a := RMAArgs{IOV: iovOf(got), Remote: []fi.RMAIOVec{{Len: uint64(len(got)), Key: 2}}, Dest: x.addr[y], Read: true}
	post(t, func() error { return x.ep.RMA(&a) }, x, y)
	settle(t, x, y)
	if !bytes.Equal(memory, want) || !bytes.Equal(got, want) {
		t.Error("the memory has changed")
	}
}
