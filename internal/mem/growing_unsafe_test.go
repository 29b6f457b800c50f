package mem

import (
	"errors"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestGrowing(t *testing.T) {
	var g Growing[plain]
	const n = 100000
	if err := g.Reserve(n); err != nil {
		t.Fatal(err)
	}
	base := g.Base()
	if g.Len() != n || g.Ready() != 0 || g.At(0) != nil {
		t.Errorf("reserved: Len %d, Ready %d, At(0) %p", g.Len(), g.Ready(), g.At(0))
	}
	used := 0
	for _, want := range []int{1, 1, 500, 40000, 1000, n} {
		before := g.Ready()
		if err := g.Grow(want); err != nil {
			t.Fatal(err)
		}
		if g.Ready() < max(before, uint32(want)) || g.Ready() > n || g.Base() != base {
			t.Fatalf("Grow(%d): ready %d, before %d", want, g.Ready(), before)
		}
		for i := range g.Ready() {
			at := g.At(uint64(i))
			if wanted := uint64(i) + 1; int(i) < used && at.A != wanted || int(i) >= used && *at != (plain{}) {
				t.Fatalf("Grow(%d): element %d is %v", want, i, *at)
			}
			at.A = uint64(i) + 1
		}
		used = int(g.Ready())
		if g.At(uint64(used)) != nil {
			t.Errorf("element %d is there", used)
		}
	}
	if used != n {
		t.Errorf("%d elements are ready, want %d", used, n)
	}
	pages := unsafe.Slice((*byte)(base), pageSize)
	if err := g.Free(); err != nil || g.Ready() != 0 || g.Len() != 0 || mapped(t, pages) {
		t.Errorf("Free: %v", err)
	}
}

func TestGrowingRefused(t *testing.T) {
	var g Growing[plain]
	for _, n := range []int{0, -1, 1 << 32} {
		if err := g.Reserve(n); !errors.Is(err, ErrSize) {
			t.Errorf("Reserve(%d): %v, want ErrSize", n, err)
		}
	}
	if err := g.Reserve(100000); err != nil {
		t.Fatal(err)
	}
	defer g.Free()
	if err := g.Grow(1); err != nil {
		t.Fatal(err)
	}
	ready := g.Ready()
	restore := InjectFaults(func(int) error { return unix.ENOMEM })
	err := g.Grow(50000)
	restore()
	if !errors.Is(err, unix.ENOMEM) || g.Ready() != ready {
		t.Errorf("Grow without memory: %v, ready %d, before %d", err, g.Ready(), ready)
	}
	if err := g.Grow(50000); err != nil || g.Ready() < 50000 {
		t.Errorf("Grow: %v, ready %d", err, g.Ready())
	}
}
