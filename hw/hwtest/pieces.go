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
	m, err := n.Memory().Register(hw.Region{Addr: unsafe.Pointer(&b[0]), Len: len(b), Access: access, Base: base, Name: name, Named: true})
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
			p.Local[i], p.Remote[i], p.Keys[i] = spanOf(mine[at:at+n]), hw.Span{Addr: uint64(k)<<40 + uint64(from), Len: uint64(n)}, 1000+uint64(k)
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
			p.Local[i], p.Remote[i], p.Keys[i] = spanOf(mine[i*64:i*64+64]), hw.Span{Addr: uint64(i) * 128, Len: 64}, good
		}
		p.Local[bad], p.Remote[bad], p.Keys[bad] = c.local, hw.Span{Addr: c.addr, Len: c.len}, c.key
		if moved, err := ep.(hw.PieceMover).MovePieces(p, true); !errors.Is(err, c.want) || moved != bad*64 {
			t.Errorf("%s: %d bytes, %v", what, moved, err)
		}
		for i := range 512 {
			if want := i < 2*bad && i%2 == 0; bytes.Equal(memory[i*64:i*64+64], mine[i/2%count*64:i/2%count*64+64]) != want {
				t.Fatalf("%s: 64 bytes at %d are written (%t)", what, i*64, !want)
			}
		}
	}
	if _, err := ep.(hw.PieceMover).MovePieces(&hw.Pieces{N: hw.MaxPieces + 1}, true); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("too many: %v", err)
	}
	b.Close()
	p := &hw.Pieces{N: 1}
	p.Local[0], p.Remote[0], p.Keys[0] = spanOf(mine[:8]), hw.Span{Len: 8}, good
	if _, err := ep.(hw.PieceMover).MovePieces(p, true); !errors.Is(err, hw.ErrPeerDead) {
		t.Errorf("dead peer: %v", err)
	}
}
