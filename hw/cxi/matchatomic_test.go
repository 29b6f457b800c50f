package cxi

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// element is room for one.
type element = [16]byte

// valueOf and elementOf convert.
func valueOf[T any](e element) (v T) {
	binary.Read(bytes.NewReader(e[:]), binary.NativeEndian, &v)
	return v
}

func elementOf(v any) (e element) {
	binary.Encode(e[:], binary.NativeEndian, v)
	return e
}

// compared is what operations leave in an element, as far as they need no bits.
func compared[T cmp.Ordered](op hw.MatchOp, was, operand, compare element) element {
	a, b, c := valueOf[T](was), valueOf[T](operand), valueOf[T](compare)
	swap := false
	switch op {
	case hw.MatchMin:
		return elementOf(min(a, b))
	case hw.MatchMax:
		return elementOf(max(a, b))
	case hw.MatchSum:
		return elementOf(a + b)
	case hw.MatchWrite:
		swap = true
	case hw.MatchSwap:
		swap = c == a
	case hw.MatchSwapNE:
		swap = c != a
	case hw.MatchSwapLE:
		swap = c <= a
	case hw.MatchSwapLT:
		swap = c < a
	case hw.MatchSwapGE:
		swap = c >= a
	case hw.MatchSwapGT:
		swap = c > a
	}
	if swap {
		return elementOf(b)
	}
	return elementOf(a)
}

// masked is what the operations on bits leave in one of n bytes.
func masked(op hw.MatchOp, was, operand, compare element, n int) (e element) {
	a, b, c := valueOf[uint64](was), valueOf[uint64](operand), valueOf[uint64](compare)
	truth := func(v bool) element { return elementOf(uint64(map[bool]int{true: 1}[v])) }
	switch op {
	case hw.MatchOr:
		a |= b
	case hw.MatchAnd:
		a &= b
	case hw.MatchXor:
		a ^= b
	case hw.MatchMasked:
		a = a&^c | b&c
	case hw.MatchLogicalOr:
		return truth(a|b != 0)
	case hw.MatchLogicalAnd:
		return truth(a != 0 && b != 0)
	case hw.MatchLogicalXor:
		return truth((a != 0) != (b != 0))
	}
	whole := elementOf(a)
	copy(e[:n], whole[:])
	return e
}

// swapped is compared for types that have no order.
func swapped[T complex64 | complex128 | [2]uint64](op hw.MatchOp, was, operand, compare element) element {
	equal := valueOf[T](was) == valueOf[T](compare)
	if op == hw.MatchWrite || op == hw.MatchSwap && equal || op == hw.MatchSwapNE && !equal {
		return operand
	}
	return was
}

func sum[T complex64 | complex128](was, operand element) element {
	return elementOf(valueOf[T](was) + valueOf[T](operand))
}

// after is what an element is after an operation.
func after(op hw.MatchOp, t hw.MatchType, was, operand, compare element) element {
	switch op {
	case hw.MatchOr, hw.MatchAnd, hw.MatchXor, hw.MatchMasked, hw.MatchLogicalOr, hw.MatchLogicalAnd,
		hw.MatchLogicalXor:
		return masked(op, was, operand, compare, atomicTypes[t].bytes)
	}
	ordered := map[hw.MatchType]func(op hw.MatchOp, was, operand, compare element) element{
		hw.MatchInt8: compared[int8], hw.MatchUint8: compared[uint8], hw.MatchInt16: compared[int16],
		hw.MatchUint16: compared[uint16], hw.MatchInt32: compared[int32], hw.MatchUint32: compared[uint32],
		hw.MatchInt64: compared[int64], hw.MatchUint64: compared[uint64], hw.MatchFloat: compared[float32],
		hw.MatchDouble: compared[float64], hw.MatchComplex64: swapped[complex64],
		hw.MatchComplex: swapped[complex128], hw.MatchInt128: swapped[[2]uint64],
		hw.MatchUint128: swapped[[2]uint64],
	}
	switch {
	case op == hw.MatchSum && t == hw.MatchComplex64:
		return sum[complex64](was, operand)
	case op == hw.MatchSum && t == hw.MatchComplex:
		return sum[complex128](was, operand)
	}
	return ordered[t](op, was, operand, compare)
}

// someElement is a value of a type, one of few, so that some are alike.
func someElement(r *rand.Rand, t hw.MatchType) (e element) {
	n := r.IntN(7) - 3
	switch t {
	case hw.MatchFloat:
		return elementOf(float32(n) + 0.5)
	case hw.MatchDouble:
		return elementOf(float64(n) + 0.5)
	case hw.MatchComplex64:
		return elementOf(complex(float32(n), float32(r.IntN(2))))
	case hw.MatchComplex:
		return elementOf(complex(float64(n), float64(r.IntN(2))))
	case hw.MatchInt128, hw.MatchUint128:
		return elementOf([2]uint64{uint64(n), uint64(r.IntN(2))})
	}
	whole := elementOf(int64(n))
	copy(e[:atomicTypes[t].bytes], whole[:])
	return e
}

// perform does an operation, and returns what it has fetched.
func (x *matching) perform(p hw.MatchAtomic) (element, error) {
	x.t.Helper()
	x.clear()
	if err := x.m.(hw.AtomicMatcher).PostAtomic(&p); err != nil {
		x.t.Fatal(err)
	}
	await(x, x, 1, 1)
	if e := x.events[0]; len(x.events) != 1 || e.Kind != hw.MatchTransferred || e.Context != p.Context || !e.Last {
		x.t.Fatalf("%+v", x.events)
	}
	return x.events[0].Fetched, x.events[0].Err
}

// TestMatchAtomics performs each operation on each type, by both kinds of keys, and compares with what Go makes of it.
func TestMatchAtomics(t *testing.T) {
	const size, at = 64, 16
	a, b := newMatching(t, MatchConfig{}, size), newMatching(t, MatchConfig{}, size)
	m := a.m.(hw.AtomicMatcher)
	r := rand.New(rand.NewPCG(1, 2))
	for _, key := range []uint64{7, 1000} {
		b.expose(key, hw.RemoteRead|hw.RemoteWrite)
		done := 0
		for op := range hw.MatchOp(20) {
			for k := range 8 * hw.MatchType(17) {
				kind, fetch := k%17, k/17%2 == 1
				if !m.AtomicValid(op, kind, fetch) {
					continue
				}
				done++
				n := atomicTypes[kind].bytes
				was, operand, compare := someElement(r, kind), someElement(r, kind), someElement(r,
					kind)
				fillBytes(b.b, uint64(k))
				copy(b.b[at:at+n], was[:])
				beside := bytes.Clone(b.b)
				got, err := a.perform(hw.MatchAtomic{To: b.self, Key: key, Offset: at, Op: op,
					Type: kind, Fetch: fetch,
					Operand: operand, Compare: compare, Ordered: k%3 == 0, Delivered: k/34%2 == 0,
					Context: uint64(k)})
				if err != nil {
					t.Fatalf("key %d, operation %d, type %d: %v", key, op, kind, err)
				}
				want := after(op, kind, was, operand, compare)
				copy(beside[at:at+n], want[:])
				if !bytes.Equal(b.b, beside) {
					t.Errorf("key %d, operation %d, type %d of % x, % x and % x: % x, not % x", key,
						op, kind, was[:n],
						operand[:n], compare[:n], b.b[at:at+n], want[:n])
				}
				if fetch && got != was || !fetch && got != (element{}) {
					t.Errorf("key %d, operation %d, type %d fetches % x, not % x", key, op, kind,
						got, was)
				}
			}
		}
		if done != 1080 {
			t.Errorf("%d operations", done)
		}
	}
}

// TestMatchAtomicsRefused: what there is not, and what a region does not allow, changes nothing.
func TestMatchAtomicsRefused(t *testing.T) {
	a, b := newMatching(t, MatchConfig{}, 4096), newMatching(t, MatchConfig{}, 4096)
	m := a.m.(hw.AtomicMatcher)
	for what, p := range map[string]hw.MatchAtomic{
		"a product":             {Op: 3, Type: hw.MatchInt32},
		"no operation":          {Op: 19, Type: hw.MatchInt32},
		"bits of a real number": {Op: hw.MatchOr, Type: hw.MatchDouble},
		"long numbers":          {Op: hw.MatchSum, Type: 12},
		"no type":               {Op: hw.MatchSum, Type: 16},
		"a key that is long":    {Op: hw.MatchSum, Type: hw.MatchInt32, Key: 1 << 32},
		"an offset too great":   {Op: hw.MatchSum, Type: hw.MatchInt32, Offset: 1 << 56},
	} {
		p.To = b.self
		if err := m.PostAtomic(&p); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	const both = hw.RemoteRead | hw.RemoteWrite
	for _, key := range exposed {
		for what, c := range map[string]struct {
			access hw.Access
			p      hw.MatchAtomic
			want   error
		}{
			"without the right":  {hw.RemoteRead, hw.MatchAtomic{Op: hw.MatchSum}, hw.ErrKey},
			"fetched without it": {hw.RemoteWrite, hw.MatchAtomic{Op: hw.MatchRead}, hw.ErrKey},
			"behind the end": {hw.RemoteWrite, hw.MatchAtomic{Op: hw.MatchSum, Offset: 4096},
				hw.ErrKey},
			"over the end": {hw.RemoteRead, hw.MatchAtomic{Op: hw.MatchRead, Offset: 4092},
				hw.ErrKey},
			"out of alignment": {hw.RemoteWrite, hw.MatchAtomic{Op: hw.MatchSum, Offset: 4},
				hw.ErrInvalid},
			"fetched and delivered": {both, hw.MatchAtomic{Op: hw.MatchRead, Offset: 4, Delivered: true},
				hw.ErrInvalid},
			"the same, no right to write": {hw.RemoteRead, hw.MatchAtomic{Op: hw.MatchRead,
				Delivered: true},
				hw.ErrKey},
		} {
			id := b.expose(key, c.access)
			c.p.To, c.p.Key, c.p.Type = b.self, key, hw.MatchUint64
			c.p.Operand[0] = 1
			if _, err := a.perform(c.p); !errors.Is(err, c.want) {
				t.Errorf("key %d, %s: %v", key, what, err)
			}
			b.withdraw(id, key)
		}
	}
	if bytes.Count(b.b, []byte{0}) != len(b.b) {
		t.Error("something was changed")
	}
}
