package mem

import (
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// object is 48 bytes, so that chunks do not divide evenly.
type object struct {
	link uint32
	id   uint32
	body [5]uint64
}

func newSlab(t testing.TB) *Slab[object] {
	t.Helper()
	s, err := NewSlab[object]()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSlabTypes(t *testing.T) {
	if _, err := NewSlab[*int](); !errors.Is(err, ErrPointers) {
		t.Errorf("pointer: %v, want ErrPointers", err)
	}
	if _, err := NewSlab[uint16](); !errors.Is(err, ErrSize) {
		t.Errorf("2 bytes: %v, want ErrSize", err)
	}
	if _, err := NewSlab[[firstBytes]byte](); !errors.Is(err, ErrSize) {
		t.Errorf("64 KiB: %v, want ErrSize", err)
	}
}

// TestSlabDistinct allocates across several chunks and checks that no two objects overlap, that both ways between
// index and pointer agree, and that content stays.
func TestSlabDistinct(t *testing.T) {
	s := newSlab(t)
	if s.Mapped() != 0 {
		t.Errorf("a new slab maps %d bytes", s.Mapped())
	}
	const n = 50000
	seen := make(map[uint32]bool)
	var all []uint32
	for k := range uint32(n) {
		p, i := s.Alloc()
		if p == nil || i == 0 || seen[i] {
			t.Fatalf("Alloc %d: %p, %d, seen %v", k, p, i, seen[i])
		}
		seen[i] = true
		all = append(all, i)
		if s.At(i) != p || s.Index(p) != i {
			t.Fatalf("index %d: At %p, Index %d, want %p", i, s.At(i), s.Index(p), p)
		}
		p.id = k
		for j := range p.body {
			p.body[j] = uint64(k)<<32 | uint64(j)
		}
	}
	if s.Live() != n {
		t.Errorf("Live %d, want %d", s.Live(), n)
	}
	for k, i := range all {
		p := s.At(i)
		if p.id != uint32(k) {
			t.Fatalf("object %d holds %d", k, p.id)
		}
		for j, v := range p.body {
			if v != uint64(k)<<32|uint64(j) {
				t.Fatalf("object %d word %d is %#x", k, j, v)
			}
		}
	}
	p := s.At(all[0])
	if i := s.Index((*object)(unsafe.Add(unsafe.Pointer(p), 8))); i != 0 {
		t.Errorf("Index of the inside of an object is %d", i)
	}
	if i := s.Index(new(object)); i != 0 {
		t.Errorf("Index of a foreign object is %d", i)
	}
}

// TestSlabRandom frees and allocates at random against a model.
func TestSlabRandom(t *testing.T) {
	s := newSlab(t)
	rng := rand.New(rand.NewPCG(1, 2))
	live := map[uint32]uint32{}
	var order []uint32
	for step := range uint32(200000) {
		grow := step/20000%2 == 0
		if len(order) == 0 || rng.IntN(3) > 0 == grow {
			p, i := s.Alloc()
			if _, ok := live[i]; ok || p == nil {
				t.Fatalf("step %d: index %d handed out twice", step, i)
			}
			p.id = step
			live[i] = step
			order = append(order, i)
			continue
		}
		k := rng.IntN(len(order))
		i := order[k]
		order[k] = order[len(order)-1]
		order = order[:len(order)-1]
		if s.At(i).id != live[i] {
			t.Fatalf("step %d: object %d holds %d, want %d", step, i, s.At(i).id, live[i])
		}
		delete(live, i)
		s.Free(i)
	}
	if s.Live() != len(live) {
		t.Errorf("Live %d, want %d", s.Live(), len(live))
	}
}

func TestSlabShrinks(t *testing.T) {
	s := newSlab(t)
	burst := func() {
		var all []uint32
		for range 10000 {
			_, i := s.Alloc()
			all = append(all, i)
		}
		for _, i := range all {
			s.Free(i)
		}
	}
	burst()
	grown := s.Mapped()
	if grown <= firstBytes {
		t.Fatalf("mapped only %d bytes", grown)
	}
	burst()
	if s.Mapped() != grown {
		t.Errorf("mapped %d after the same burst, want %d", s.Mapped(), grown)
	}
	for range slabDrains {
		_, i := s.Alloc()
		s.Free(i)
	}
	if s.Mapped() != Round(firstBytes/48*48) {
		t.Errorf("mapped %d after %d drains, want the first chunk", s.Mapped(), slabDrains)
	}
	burst()
	_, i := s.Alloc()
	if err := s.Trim(); err != nil || s.Mapped() != grown {
		t.Errorf("Trim with a live object: %v, mapped %d, want %d", err, s.Mapped(), grown)
	}
	s.Free(i)
	if err := s.Trim(); err != nil || s.Mapped() > Round(firstBytes) {
		t.Errorf("Trim: %v, mapped %d", err, s.Mapped())
	}
	if err := s.Close(); err != nil || s.Mapped() != 0 || s.Live() != 0 {
		t.Errorf("Close: %v, mapped %d, live %d", err, s.Mapped(), s.Live())
	}
	if p, i := s.Alloc(); p == nil || i == 0 {
		t.Error("a closed slab does not allocate again")
	}
}

// TestSlabFull shows that a failed Alloc changes nothing and that the slab goes on when there is memory again.
func TestSlabFull(t *testing.T) {
	s := newSlab(t)
	var all []uint32
	restore := InjectFaults(func(bytes int) error {
		if bytes > firstBytes {
			return unix.ENOMEM
		}
		return nil
	})
	defer restore()
	for {
		_, i := s.Alloc()
		if i == 0 {
			break
		}
		all = append(all, i)
	}
	if want := firstBytes/48 - 1; len(all) != want || s.Live() != want || !errors.Is(s.Err(), unix.ENOMEM) {
		t.Errorf("%d objects, Live %d, %v; want %d, ENOMEM", len(all), s.Live(), s.Err(), want)
	}
	s.Free(all[7])
	if _, i := s.Alloc(); i != all[7] {
		t.Errorf("Alloc after Free: %d, want %d", i, all[7])
	}
	restore()
	if p, i := s.Alloc(); p == nil || i == 0 || s.Err() != nil {
		t.Errorf("Alloc with memory: %p, %d, %v", p, i, s.Err())
	}
}

func TestSlabNoHeap(t *testing.T) {
	s := newSlab(t)
	_, keep := s.Alloc()
	defer s.Free(keep)
	n := testing.AllocsPerRun(1000, func() {
		_, a := s.Alloc()
		_, b := s.Alloc()
		s.Free(a)
		s.Free(b)
	})
	if n != 0 {
		t.Errorf("%v heap allocations", n)
	}
}

func BenchmarkSlab(b *testing.B) {
	s := newSlab(b)
	_, keep := s.Alloc()
	defer s.Free(keep)
	for b.Loop() {
		_, i := s.Alloc()
		s.Free(i)
	}
}
