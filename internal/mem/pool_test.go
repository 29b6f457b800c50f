package mem

import (
	"errors"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"
)

func newPool(t testing.TB, keep int) *Pool {
	p := NewPool(keep)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func get(t testing.TB, p *Pool, n int) uint64 {
	t.Helper()
	a, err := p.Get(n)
	if err != nil {
		t.Fatalf("Get(%d): %v", n, err)
	}
	return a
}

func TestPoolSizes(t *testing.T) {
	p := newPool(t, 0)
	for n := 1; n <= 4<<20; n = n*3/2 + 1 {
		a := get(t, p, n)
		if a%64 != 0 {
			t.Errorf("Get(%d) at %#x", n, a)
		}
		want := Round(n)
		if n <= 1<<maxClass {
			want = 1 << (class(n) + minClass)
		}
		if p.Used() != want || want < n {
			t.Errorf("Get(%d): used %d, want %d", n, p.Used(), want)
		}
		b := Bytes(a, n)
		for i := range b {
			b[i] = byte(i)
		}
		p.Put(a, n)
		if p.Used() != 0 || p.Mapped() != 0 {
			t.Errorf("Put(%d): used %d, mapped %d, want 0", n, p.Used(), p.Mapped())
		}
	}
}

func TestPoolErrors(t *testing.T) {
	p := newPool(t, 0)
	for _, n := range []int{0, -1, maxMap + 1} {
		if _, err := p.Get(n); !errors.Is(err, ErrSize) {
			t.Errorf("Get(%d): %v, want ErrSize", n, err)
		}
	}
}

// TestPoolFull shows that a Get that finds no memory changes nothing.
func TestPoolFull(t *testing.T) {
	p := newPool(t, 0)
	a := get(t, p, 1<<20)
	used, mapped := p.Used(), p.Mapped()
	restore := InjectFaults(func(int) error { return unix.ENOMEM })
	defer restore()
	for _, n := range []int{1, 5000, 1 << 20, 2 << 20} {
		if _, err := p.Get(n); !errors.Is(err, unix.ENOMEM) {
			t.Errorf("Get(%d): %v, want ENOMEM", n, err)
		}
	}
	if p.Used() != used || p.Mapped() != mapped {
		t.Errorf("used %d, mapped %d; want %d, %d", p.Used(), p.Mapped(), used, mapped)
	}
	p.Put(a, 1<<20)
	if p.Used() != 0 || p.Mapped() != 0 {
		t.Errorf("after Put: used %d, mapped %d", p.Used(), p.Mapped())
	}
}

type kept struct {
	addr uint64
	n    int
	mark byte
}

// TestPoolRandom fills every buffer and checks when it is put back that nothing else wrote to it.
func TestPoolRandom(t *testing.T) {
	for _, keep := range []int{0, 1 << 20, 1 << 30} {
		p := newPool(t, keep)
		rng := rand.New(rand.NewPCG(uint64(keep), 7))
		var all []kept
		for step := range 20000 {
			if len(all) == 0 || rng.IntN(2) == 0 && len(all) < 300 {
				n := 1 + rng.IntN(1<<rng.IntN(maxClass+2))
				h := kept{get(t, p, n), n, byte(step)}
				fill(h)
				all = append(all, h)
				continue
			}
			k := rng.IntN(len(all))
			h := all[k]
			check(t, h)
			p.Put(h.addr, h.n)
			all[k] = all[len(all)-1]
			all = all[:len(all)-1]
		}
		for _, h := range all {
			check(t, h)
			p.Put(h.addr, h.n)
		}
		if p.Used() != 0 || p.Mapped() != p.idle || p.idle > keep || len(p.spans) == 0 != (p.idle == 0) {
			t.Errorf("keep %d: used %d, mapped %d, idle %d, spans %d", keep, p.Used(), p.Mapped(), p.idle, len(p.spans))
		}
		p.Trim()
		if p.Mapped() != 0 || p.idle != 0 || len(p.spans) != 0 {
			t.Errorf("after Trim: mapped %d, idle %d, spans %d", p.Mapped(), p.idle, len(p.spans))
		}
	}
}

// fill marks the ends and a stride of the buffer.
func fill(h kept) {
	b := Bytes(h.addr, h.n)
	for i := 0; i < len(b); i += 509 {
		b[i] = h.mark
	}
	b[len(b)-1] = h.mark
}

func check(t *testing.T, h kept) {
	t.Helper()
	b := Bytes(h.addr, h.n)
	for i := 0; i < len(b); i += 509 {
		if b[i] != h.mark {
			t.Fatalf("buffer of %d: byte %d is %d, want %d", h.n, i, b[i], h.mark)
		}
	}
	if b[len(b)-1] != h.mark {
		t.Fatalf("buffer of %d: last byte is %d, want %d", h.n, b[len(b)-1], h.mark)
	}
}

// TestPoolWatermark shows that idle memory is kept up to the watermark, and reused.
func TestPoolWatermark(t *testing.T) {
	p := newPool(t, 2*smallSpan)
	var all []uint64
	for range 20 * smallSpan / 1024 {
		all = append(all, get(t, p, 1000))
	}
	top := p.Mapped()
	for _, a := range all {
		p.Put(a, 1000)
	}
	if p.Mapped() != 2*smallSpan || top < 20*smallSpan {
		t.Errorf("mapped %d, then %d; want >= %d, then %d", top, p.Mapped(), 20*smallSpan, 2*smallSpan)
	}
	a := get(t, p, 1000)
	if p.Mapped() != 2*smallSpan || p.idle != smallSpan {
		t.Errorf("idle memory was not reused: mapped %d, idle %d", p.Mapped(), p.idle)
	}
	p.Put(a, 1000)
}

func TestPoolNoHeap(t *testing.T) {
	p := newPool(t, 4<<20)
	for _, n := range []int{64, 4096, 8192, 1 << 20} {
		got := testing.AllocsPerRun(100, func() {
			a, _ := p.Get(n)
			p.Put(a, n)
		})
		if got != 0 {
			t.Errorf("%d bytes: %v heap allocations", n, got)
		}
	}
}

func BenchmarkPool(b *testing.B) {
	p := newPool(b, 4<<20)
	for b.Loop() {
		a, _ := p.Get(100)
		p.Put(a, 100)
	}
}
