package atomics

import (
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
)

var integersOf = []struct {
	d      fi.Datatype
	signed bool
}{
	{fi.Int8, true}, {fi.Uint8, false}, {fi.Int16, true}, {fi.Uint16, false}, {fi.Int32, true}, {fi.Uint32, false},
	{fi.Int64, true}, {fi.Uint64, false}, {fi.Int128, true}, {fi.Uint128, false},
}

// value reads an integer of size bytes.
func value(b []byte, signed bool) *big.Int {
	v := new(big.Int)
	for i := len(b) - 1; i >= 0; i-- {
		v.Lsh(v, 8).Or(v, big.NewInt(int64(b[i])))
	}
	if signed && b[len(b)-1]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

func store(b []byte, v *big.Int) {
	m := new(big.Int).Mod(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	for i := range b {
		b[i] = byte(new(big.Int).Rsh(m, uint(8*i)).Uint64())
	}
}

// model computes an operation with big integers.
func model(op fi.Op, cur, x, c *big.Int) *big.Int {
	one := func(b bool) *big.Int {
		if b {
			return big.NewInt(1)
		}
		return new(big.Int)
	}
	pick := func(b bool) *big.Int {
		if b {
			return x
		}
		return cur
	}
	n := new(big.Int)
	switch op {
	case fi.OpMin:
		return pick(x.Cmp(cur) < 0)
	case fi.OpMax:
		return pick(x.Cmp(cur) > 0)
	case fi.OpSum:
		return n.Add(cur, x)
	case fi.OpDiff:
		return n.Sub(cur, x)
	case fi.OpProd:
		return n.Mul(cur, x)
	case fi.OpLOr:
		return one(cur.Sign() != 0 || x.Sign() != 0)
	case fi.OpLAnd:
		return one(cur.Sign() != 0 && x.Sign() != 0)
	case fi.OpLXor:
		return one((cur.Sign() != 0) != (x.Sign() != 0))
	case fi.OpBOr:
		return n.Or(cur, x)
	case fi.OpBAnd:
		return n.And(cur, x)
	case fi.OpBXor:
		return n.Xor(cur, x)
	case fi.OpRead:
		return cur
	case fi.OpWrite:
		return x
	case fi.OpCSwap:
		return pick(c.Cmp(cur) == 0)
	case fi.OpCSwapNE:
		return pick(c.Cmp(cur) != 0)
	case fi.OpCSwapLE:
		return pick(c.Cmp(cur) <= 0)
	case fi.OpCSwapLT:
		return pick(c.Cmp(cur) < 0)
	case fi.OpCSwapGE:
		return pick(c.Cmp(cur) >= 0)
	case fi.OpCSwapGT:
		return pick(c.Cmp(cur) > 0)
	case fi.OpMSwap:
		return n.Or(new(big.Int).And(x, c), new(big.Int).AndNot(cur, c))
	}
	panic("no such operation")
}

// TestIntegersAgainstModel compares random operations with the model, element
// by element, in the middle of memory that must stay.
func TestIntegersAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, ty := range integersOf {
		size := ty.d.Size()
		for op := fi.OpMin; op <= fi.OpDiff; op++ {
			for range 200 {
				checkIntegers(t, r, ty.d, op, size, ty.signed)
			}
		}
	}
}

func checkIntegers(t *testing.T, r *rand.Rand, d fi.Datatype, op fi.Op, size int, signed bool) {
	t.Helper()
	const count = 3
	random := func() []byte {
		b := make([]byte, count*size+1)
		for i := range b {
			b[i] = [...]byte{0, 1, 0xFF, 0x80, byte(r.Uint32())}[r.IntN(5)]
		}
		return b[1:] // operands may have any alignment
	}
	memory := make([]wide, 2+count*size/16+1)
	all := unsafe.Slice((*byte)(unsafe.Pointer(&memory[0])), len(memory)*16)
	copy(all[16:], random())
	before := append([]byte(nil), all...)
	x, c, res := random(), random(), make([]byte, count*size)
	if r.IntN(2) == 0 {
		copy(c, all[16:16+count*size])
	}
	j := Job{Op: op, Datatype: d, Count: count, Target: unsafe.Pointer(&all[16]),
		Operand: unsafe.Pointer(&x[0]), Compare: unsafe.Pointer(&c[0]), Result: unsafe.Pointer(&res[0])}
	if !Apply(&j) {
		t.Fatalf("datatype %d has no operation %d", d, op)
	}
	want := append([]byte(nil), before...)
	for i := range count {
		e := func(b []byte) []byte { return b[i*size:][:size] }
		store(e(want[16:]), model(op, value(e(before[16:]), signed), value(e(x), signed), value(e(c), signed)))
	}
	if string(all) != string(want) {
		t.Fatalf("datatype %d, operation %d of %x with %x, %x: %x, want %x", d, op, before, x, c, all, want)
	}
	if string(res) != string(before[16:16+count*size]) {
		t.Fatalf("datatype %d, operation %d: result %x, was %x", d, op, res, before[16:16+count*size])
	}
}

func run[T any](t *testing.T, d fi.Datatype, op fi.Op, cur, x, c T) T {
	t.Helper()
	room := make([]wide, 2) // aligned to its size
	p := unsafe.Pointer(&room[0])
	*(*T)(p) = cur
	if !Apply(&Job{Op: op, Datatype: d, Count: 1, Target: p, Operand: unsafe.Pointer(&x),
		Compare: unsafe.Pointer(&c)}) {
		t.Fatalf("datatype %d has no operation %d", d, op)
	}
	return *(*T)(p)
}

func TestFloats(t *testing.T) {
	if v := run[float32](t, fi.Float, fi.OpSum, 1.5, 2.25, 0); v != 3.75 {
		t.Errorf("float sum %v", v)
	}
	if v := run(t, fi.Double, fi.OpMin, 1.5, -2.25, 0); v != -2.25 {
		t.Errorf("double min %v", v)
	}
	if v := run(t, fi.Double, fi.OpMax, 1.5, math.NaN(), 0); v != 1.5 {
		t.Errorf("max with NaN %v", v)
	}
	if v := run(t, fi.Double, fi.OpLXor, 1.5, 0, 0); v != 1 {
		t.Errorf("logical xor %v", v)
	}
	if v := run(t, fi.Double, fi.OpCSwapLT, 1.5, 9, 1.25); v != 9 {
		t.Errorf("compare less %v", v)
	}
	if v := run(t, fi.DoubleComplex, fi.OpProd, complex(1, 2), complex(3, -1), 0); v != complex(5, 5) {
		t.Errorf("complex product %v", v)
	}
	if v := run[complex64](t, fi.FloatComplex, fi.OpDiff, 3+4i, 1+1i, 0); v != 2+3i {
		t.Errorf("complex difference %v", v)
	}
}

// TestHalfRoundTrip converts every 16-bit float there and back.
func TestHalfRoundTrip(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		if f := fromHalf(h); f == f && toHalf(f) != h {
			t.Fatalf("half %#x is %v is %#x", h, f, toHalf(f))
		} else if f != f && toHalf(f)&0x7C00 != 0x7C00 {
			t.Fatalf("half %#x: NaN became %#x", h, toHalf(f))
		}
		if f := fromBrain(h); f == f && toBrain(f) != h {
			t.Fatalf("bfloat %#x is %v is %#x", h, f, toBrain(f))
		}
	}
}

// TestHalfRounding compares with the nearest of the two neighbours.
func TestHalfRounding(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200000 {
		f := float32(math.Ldexp(r.Float64()*2-1, r.IntN(44)-27))
		h := toHalf(f)
		got := math.Abs(float64(fromHalf(h)) - float64(f))
		for _, n := range []uint16{h - 1, h + 1} {
			other := float64(fromHalf(n))
			if h&0x7FFF == 0 && n == h-1 || math.IsNaN(other) || math.IsInf(other, 0) {
				continue
			}
			d := math.Abs(other - float64(f))
			if d < got || d == got && h&1 != 0 {
				t.Fatalf("%v became %#x (%v), nearer is %#x (%v)", f, h, fromHalf(h), n, other)
			}
		}
	}
	if toHalf(65519.9) != 0x7BFF || toHalf(65520) != 0x7C00 || toHalf(-1e9) != 0xFC00 {
		t.Errorf("overflow: %#x %#x %#x", toHalf(65519.9), toHalf(65520), toHalf(-1e9))
	}
	if v := run[uint16](t, fi.Float16, fi.OpSum, 0x3C00, 0x4000, 0); v != 0x4200 { // 1 + 2
		t.Errorf("half sum %#x", v)
	}
}

func TestValidAgreesWithApply(t *testing.T) {
	var x, c [64]byte
	room := make([]wide, 4) // aligned to its size
	p := unsafe.Pointer(&room[0])
	for d := fi.Int8; d <= fi.BFloat16+3; d++ {
		for op := fi.OpMin; op <= fi.OpDiff+2; op++ {
			valid := Valid(Base, d, op) || Valid(Fetch, d, op) || Valid(Compare, d, op)
			ok := Apply(&Job{Op: op, Datatype: d, Count: 1, Target: p, Operand: unsafe.Pointer(&x),
				Compare: unsafe.Pointer(&c)})
			if valid != ok {
				t.Errorf("datatype %d, operation %d: valid %v, applied %v", d, op, valid, ok)
			}
		}
	}
	if Apply(&Job{Op: fi.OpSum, Datatype: fi.Int64, Count: 1, Target: unsafe.Add(p, 4), Operand: unsafe.Pointer(&x)}) {
		t.Error("a target out of alignment is accepted")
	}
}

// TestNothingIsLost adds from several threads, of every width, next to each other.
func TestNothingIsLost(t *testing.T) {
	const threads, rounds = 4, 20000
	memory := make([]wide, 8)
	base := unsafe.Pointer(&memory[0])
	targets := map[fi.Datatype]unsafe.Pointer{
		fi.Uint8: base, fi.Uint16: unsafe.Add(base, 2), fi.Uint32: unsafe.Add(base, 4), fi.Uint64: unsafe.Add(base, 8),
		fi.Uint128: unsafe.Add(base, 16), fi.Double: unsafe.Add(base, 32),
	}
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			one, onef := wide{lo: 1}, 1.0
			for range rounds {
				for d, p := range targets {
					x := unsafe.Pointer(&one)
					if d == fi.Double {
						x = unsafe.Pointer(&onef)
					}
					Apply(&Job{Op: fi.OpSum, Datatype: d, Count: 1, Target: p, Operand: x})
				}
			}
		})
	}
	wg.Wait()
	const sum = threads * rounds
	if *(*uint8)(targets[fi.Uint8]) != sum%256 || *(*uint16)(targets[fi.Uint16]) != sum%65536 ||
		*(*uint32)(targets[fi.Uint32]) != sum ||
		*(*uint64)(targets[fi.Uint64]) != sum || memory[1].lo != sum || *(*float64)(targets[fi.Double]) != sum {
		t.Errorf("sums %x, want %#x", memory[:3], sum)
	}
}
