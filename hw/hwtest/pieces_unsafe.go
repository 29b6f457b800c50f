package hwtest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
)

// Tests of hw.PieceMover: many pieces of several regions of one peer, moved by one call.

// named registers b at the node under a name.
func (n *node) named(b []byte, base, name uint64, access hw.Access) hw.Memory {
	n.t.Helper()
	m, err := n.Memory().Register(hw.Region{Addr: unsafe.Pointer(&b[0]), Len: len(b), Access: access, Base: base,
		Name: name, Named: true})
	if err != nil {
		n.t.Fatalf("register %d bytes: %v", len(b), err)
	}
	n.t.Cleanup(func() { _ = m.Close() })
	return m
}

func spanOf(b []byte) hw.Span {
	return hw.Span{Addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), Len: uint64(len(b))}
}

// testPieces moves random pieces of more regions than one system call takes, and compares
// with a model.
func testPieces(t *testing.T, open Factory) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	a, b := newNode(t, open), newNode(t, open)
	mover := a.connect(b).(hw.PieceMover)
	const regions, size = 11, 1 << 18
	var memory, model [regions][]byte
	for i := range memory {
		memory[i], model[i] = target(t, size), patterned(size, uint64(i))
		copy(memory[i], model[i])
		b.named(memory[i], uint64(i)<<40, 1000+uint64(i), all)
	}
	mine := target(t, regions*size)
	want := patterned(regions*size, 99)
	copy(mine, want)
	p := new(hw.Pieces)
	for range 60 {
		write := r.IntN(2) == 0
		p.N = r.IntN([...]int{3, 60, hw.MaxPieces + 1}[r.IntN(3)])
		most, at, total := [...]int{9, 200, 9000}[r.IntN(3)], 0, uint64(0)
		for i := range p.N {
			n := min(r.IntN(most), len(mine)-at)
			k := r.IntN(regions)
			from := r.IntN(size - n + 1)
			p.Local[i], p.Remote[i], p.Keys[i] = spanOf(mine[at:at+n]), hw.Span{Addr: uint64(k)<<40 + uint64(from),
				Len: uint64(n)}, 1000+uint64(k)
			if write {
				copy(model[k][from:from+n], want[at:at+n])
			} else {
				copy(want[at:at+n], model[k][from:from+n])
			}
			at += n
			total += uint64(n)
		}
		if moved, err := mover.MovePieces(p, write); err != nil || moved != total {
			t.Fatalf("%d pieces: %d of %d bytes, %v", p.N, moved, total, err)
		}
		for i := range memory {
			if !bytes.Equal(memory[i], model[i]) {
				t.Fatalf("region %d differs from the model", i)
			}
		}
		if !bytes.Equal(mine, want) {
			t.Fatal("local memory differs from the model")
		}
	}
}

// testPiecesRefused has one piece of many be refused: those before it are moved, nothing else is.
func testPiecesRefused(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep := a.connect(b)
	const good, readable, closed, count, bad = 1, 2, 3, 100, 70
	memory := target(t, 1<<16)
	b.named(memory, 0, good, all)
	b.named(memory, 0, readable, hw.RemoteRead)
	if err := b.named(memory, 0, closed, all).Close(); err != nil {
		t.Fatal(err)
	}
	mine := patterned(1<<16, 5)
	for what, c := range map[string]struct {
		key, addr, len uint64
		local          hw.Span
		want           error
	}{
		"closed":      {closed, 0, 64, spanOf(mine[:64]), hw.ErrKey},
		"unknown":     {4711, 0, 64, spanOf(mine[:64]), hw.ErrKey},
		"no right":    {readable, 0, 64, spanOf(mine[:64]), hw.ErrKey},
		"past":        {good, 1<<16 - 63, 64, spanOf(mine[:64]), hw.ErrKey},
		"far past":    {good, 1 << 60, 64, spanOf(mine[:64]), hw.ErrKey},
		"wraps":       {good, 32, ^uint64(0), spanOf(mine[:64]), hw.ErrKey},
		"longer here": {good, 0, 63, spanOf(mine[:64]), hw.ErrInvalid},
		"not mapped":  {good, 0, 64, hw.Span{Addr: 8, Len: 64}, hw.ErrInvalid},
	} {
		clear(memory)
		p := &hw.Pieces{N: count}
		for i := range count {
			p.Local[i], p.Remote[i], p.Keys[i] = spanOf(mine[i*64:i*64+64]), hw.Span{Addr: uint64(i) * 128, Len: 64},
				good
		}
		p.Local[bad], p.Remote[bad], p.Keys[bad] = c.local, hw.Span{Addr: c.addr, Len: c.len}, c.key
		if moved, err := ep.(hw.PieceMover).MovePieces(p, true); !errors.Is(err, c.want) || moved != bad*64 {
			t.Errorf("%s: %d bytes, %v", what, moved, err)
		}
		for i := range 512 {
			if want := i < 2*bad && i%2 == 0; bytes.Equal(memory[i*64:i*64+64],
				mine[i/2%count*64:i/2%count*64+64]) != want {
				t.Fatalf("%s: 64 bytes at %d are written (%t)", what, i*64, !want)
			}
		}
	}
	if _, err := ep.(hw.PieceMover).MovePieces(&hw.Pieces{N: hw.MaxPieces + 1}, true); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("too many: %v", err)
	}
	testPeerPieces(t, ep.(hw.PieceMover), memory, mine)
	b.Close()
	p := &hw.Pieces{N: 1}
	p.Local[0], p.Remote[0], p.Keys[0] = spanOf(mine[:8]), hw.Span{Len: 8}, good
	if _, err := ep.(hw.PieceMover).MovePieces(p, true); !errors.Is(err, hw.ErrPeerDead) {
		t.Errorf("dead peer: %v", err)
	}
	p.Remote[0] = spanOf(memory[:8])
	if _, err := ep.(hw.PieceMover).MovePeer(p, true); !errors.Is(err, hw.ErrPeerDead) {
		t.Errorf("dead peer, by addresses of its process: %v", err)
	}
}

// testPeerPieces moves pieces by addresses of the peer's process, which is this one.
func testPeerPieces(t *testing.T, mover hw.PieceMover, memory, mine []byte) {
	p := new(hw.Pieces)
	fill := func(n int) {
		for p.N = 0; p.N < n; p.N++ {
			p.Local[p.N], p.Remote[p.N] = spanOf(mine[p.N*64:p.N*64+40]), spanOf(memory[p.N*64+8:p.N*64+48])
		}
	}
	for _, n := range []int{0, 3, hw.MaxPieces} {
		for _, write := range []bool{true, false} {
			clear(memory)
			if !write {
				copy(memory, patterned(len(memory), 6))
			}
			fill(n)
			if moved, err := mover.MovePeer(p, write); err != nil || moved != uint64(n)*40 {
				t.Fatalf("%d pieces, write %t: %d bytes, %v", n, write, moved, err)
			}
			for i := range n {
				if !bytes.Equal(mine[i*64:i*64+40], memory[i*64+8:i*64+48]) {
					t.Fatalf("piece %d of %d, write %t, differs", i, n, write)
				}
			}
		}
	}
	for what, change := range map[string]func(){
		"longer there": func() { p.Remote[1].Len++ },
		"wraps":        func() { p.Local[1].Len, p.Remote[1].Len = ^uint64(0), ^uint64(0) },
		"too many":     func() { p.N = hw.MaxPieces + 1 },
		"not mapped":   func() { p.Remote[0].Addr = 8 },
	} {
		fill(3)
		change()
		if moved, err := mover.MovePeer(p, true); !errors.Is(err, hw.ErrInvalid) || moved != 0 {
			t.Errorf("%s: %d bytes, %v", what, moved, err)
		}
	}
}
