package atomics

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
)

// TestCombineAsApply compares Combine with Apply, for every datatype and
// operation, at odd addresses and at aligned ones, and in place.
func TestCombineAsApply(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const count = 7
	for d := fi.Int8; d <= fi.BFloat16; d++ {
		for op := fi.OpMin; op <= fi.OpDiff; op++ {
			if !Combines(d, op) {
				continue
			}
			n := count * d.Size()
			for shift := range 2 {
				room := make([]wide, 4*(n/16+2))
				all := unsafe.Slice((*byte)(unsafe.Pointer(&room[0])), len(room)*16)
				at := func(i int) []byte { return all[i*(n/16+2)*16+shift:][:n] }
				a, b, dst := at(0), at(1), at(2)
				for i := range all {
					all[i] = [...]byte{0, 1, 0xFF, 0x80, byte(r.Uint32())}[r.IntN(5)]
				}
				target := make([]wide, n/16+1)
				want := unsafe.Slice((*byte)(unsafe.Pointer(&target[0])), n)
				copy(want, a)
				if !Apply(&Job{Op: op, Datatype: d, Count: count, Target: unsafe.Pointer(&want[0]),
					Operand: unsafe.Pointer(&b[0])}) {
					t.Fatalf("datatype %d, operation %d: Apply refuses", d, op)
				}
				f := Combine(d, op)
				f(dst, a, b)
				x, y := bytes.Clone(a), bytes.Clone(b)
				f(x, x, b)
				f(y, a, y)
				for _, got := range [][]byte{dst, x, y} {
					if !bytes.Equal(got, want) {
						t.Fatalf("datatype %d, operation %d of %x and %x: %x, want %x", d, op, a, b, got, want)
					}
				}
			}
		}
	}
}

func TestCombines(t *testing.T) {
	for _, c := range []struct {
		d  fi.Datatype
		op fi.Op
		ok bool
	}{
		{fi.Int32, fi.OpSum, true}, {fi.Double, fi.OpBOr, false}, {fi.DoubleComplex, fi.OpMin, false},
		{fi.Uint8, fi.OpBXor, true},
		{fi.Int64, fi.OpWrite, false}, {fi.Int64, fi.OpRead, false}, {fi.Int64, fi.OpDiff, false},
		{fi.Int64, fi.OpCSwap, false},
		{fi.Void, fi.OpSum, false}, {fi.Int64, fi.OpNone, false}, {fi.Datatype(77), fi.OpSum, false},
	} {
		if Combines(c.d, c.op) != c.ok {
			t.Errorf("datatype %d, operation %d: %v", c.d, c.op, !c.ok)
		}
	}
}

func BenchmarkCombineSumDouble(b *testing.B) {
	x, y := make([]byte, 1<<16), make([]byte, 1<<16)
	f := Combine(fi.Double, fi.OpSum)
	b.SetBytes(1 << 16)
	for b.Loop() {
		f(x, x, y)
	}
}
