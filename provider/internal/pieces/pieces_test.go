package pieces

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// empty is a list without elements.
func empty() *dataplane.List { return &dataplane.List{Flat: true, Direct: true} }

// everywhere is a region of all addresses.
var everywhere = Region{Length: 1 << 62}

// TestFit completes runs that fit, and refuses others with the errno that says why.
func TestFit(t *testing.T) {
	some := &dataplane.List{Count: 5, Bytes: 1 << 20}
	for name, c := range map[string]struct {
		l      *dataplane.List
		run    dataplane.Run
		count  uint64
		region Region
		want   fi.Errno
	}{
		"one":           {some, dataplane.Run{Local: 8, Len: 8}, 1, Region{0, 8}, fi.Success},
		"last byte":     {some, dataplane.Run{Local: 8, Len: 8, There: 10}, 3, Region{0, 28}, fi.Success},
		"beyond":        {some, dataplane.Run{Local: 8, Len: 8, There: 10}, 3, Region{0, 27}, fi.EACCES},
		"before":        {some, dataplane.Run{Local: 8, Len: 8, Remote: 99}, 1, Region{100, 50}, fi.EACCES},
		"wraps there":   {some, dataplane.Run{Local: 8, Len: 8, There: 1 << 62}, 9, everywhere, fi.EACCES},
		"wraps here":    {some, dataplane.Run{Local: ^uint64(0) - 5, Len: 8}, 1, everywhere, fi.EINVAL},
		"far apart":     {some, dataplane.Run{Local: 8, Len: 8, Here: 1 << 62}, 9, everywhere, fi.EINVAL},
		"no memory":     {some, dataplane.Run{Len: 8}, 1, everywhere, fi.EINVAL},
		"no bytes":      {some, dataplane.Run{}, 1, everywhere, fi.Success},
		"many":          {some, dataplane.Run{Local: 8}, dataplane.MaxElements - 4, everywhere, fi.EINVAL},
		"most":          {some, dataplane.Run{Local: 8}, dataplane.MaxElements - 5, everywhere, fi.Success},
		"long":          {some, dataplane.Run{Local: 8, Len: wire.MaxMessage + 1}, 1, everywhere, fi.EMSGSIZE},
		"long together": {some, dataplane.Run{Local: 8, Len: wire.MaxMessage / 2}, 2, everywhere, fi.EMSGSIZE},
	} {
		run := c.run
		err := Fit(c.l, &run, c.count, c.region)
		if got := fi.ErrnoOf(err); err != nil && got != c.want || (err == nil) != (c.want == fi.Success) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if err == nil && (run.First != 5 || uint64(run.Count) != c.count || run.Here == 0 && run.Len != 0) {
			t.Errorf("%s: %+v", name, run)
		}
	}
}

// program makes a list of random runs, and returns its elements one by one.
func program(rnd *rand.Rand, n int) (*dataplane.List, []dataplane.Element) {
	l, want := empty(), []dataplane.Element{}
	var room Room
	local, remote := uint64(1<<20), uint64(1<<30)
	for i := range n {
		run := dataplane.Run{Local: local, Remote: remote, Len: uint64(1+rnd.IntN(2)) * 16, Key: 7}
		if rnd.IntN(4) == 0 {
			run.Local, run.Remote = local+uint64(rnd.IntN(100)), remote+uint64(rnd.IntN(100))
		}
		if rnd.IntN(8) == 0 {
			run.Here, run.There = run.Len+8, run.Len+24
		}
		run.Direct = rnd.IntN(10) != 0
		run.Mapped = !run.Direct && rnd.IntN(2) == 0
		if err := room.Grow(l, i, n); err != nil {
			panic(err)
		}
		if err := Fit(l, &run, uint64(1+rnd.IntN(3)), everywhere); err != nil {
			panic(err)
		}
		for k := range run.Count {
			want = append(want, run.At(run.First+k))
		}
		last := want[len(want)-1]
		local, remote = last.Local+last.Len, last.Remote+last.Len
		Append(l, run)
	}
	return l, want
}

// TestAppend joins runs and changes no element by that.
func TestAppend(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		l, want := program(rnd, 200)
		bytes, flat, direct := uint64(0), true, true
		sel := Selection{List: l}
		for i := range want {
			if got := sel.At(i); got != want[i] {
				t.Fatalf("element %d is %+v, want %+v", i, got, want[i])
			}
			bytes += want[i].Len
			direct = direct && want[i].Direct
		}
		for i := range l.Runs {
			flat = flat && l.Runs[i].Count == 1
		}
		if sel.Len() != len(want) || sel.Bytes() != bytes || l.Flat != flat || l.Direct != direct {
			t.Fatalf("%d elements of %d, %d bytes of %d, flat %t, direct %t", sel.Len(), len(want), l.Bytes,
				bytes, l.Flat, l.Direct)
		}
		if len(l.Runs) == len(want) {
			t.Error("nothing was joined")
		}
	}
}

// TestGrow makes room a few times only, and not for twice as many runs as there are.
func TestGrow(t *testing.T) {
	const n = 4096
	for name, joins := range map[string]func(i int) bool{
		"apart": func(int) bool { return false }, "joined": func(int) bool { return true },
		"first apart": func(i int) bool { return i > n/2 }, "last apart": func(i int) bool { return i < n/2 },
	} {
		var l *dataplane.List
		allocations := testing.AllocsPerRun(1, func() {
			l = empty()
			var room Room
			defer room.Free()
			local := uint64(1 << 20)
			for i := range n {
				if !joins(i) {
					local += uint64(i%2) * 8
				}
				if err := room.Grow(l, i, n); err != nil {
					t.Fatal(err)
				}
				run := dataplane.Run{Local: local, Remote: uint64(i) * 8, Len: 8, Key: 7}
				if err := Fit(l, &run, 1, everywhere); err != nil {
					t.Fatal(err)
				}
				Append(l, run)
				local += 8
			}
			room.Trim(l)
		})
		if l.Count != n || cap(l.Runs) > 2*len(l.Runs) || allocations > 16 {
			t.Errorf("%s: %d elements in %d runs, room for %d, %.0f allocations", name, l.Count, len(l.Runs),
				cap(l.Runs), allocations)
		}
	}
}

// TestGrowFails finds no memory, when a list grows and when it gives some back.
func TestGrowFails(t *testing.T) {
	const n = 8 * heapRuns
	l := empty()
	var room Room
	defer room.Free()
	grow := func(i int) error {
		if err := room.Grow(l, i, n); err != nil {
			return err
		}
		at := uint64(i)
		Append(l, dataplane.Run{Local: 1 << 20, Remote: at * 64, Len: 8, Key: at, First: uint32(i), Count: 1})
		return nil
	}
	full := func(int) error { return fi.ENOMEM }
	restore := mem.InjectFaults(full)
	i := 0
	for ; i < n; i++ {
		if err := grow(i); err != nil {
			if fi.ErrnoOf(err) != fi.ENOMEM {
				t.Errorf("%v", err)
			}
			break
		}
	}
	if i == 0 || i == n || len(l.Runs) != i {
		t.Fatalf("%d runs of %d without memory for them", len(l.Runs), i)
	}
	restore()
	for ; i < n; i++ {
		if err := grow(i); err != nil {
			t.Fatal(err)
		}
	}
	l.Runs = l.Runs[:2*heapRuns]
	defer mem.InjectFaults(full)()
	room.Trim(l)
	for i := range l.Runs {
		if l.Runs[i].Key != uint64(i) {
			t.Fatalf("run %d is %+v", i, l.Runs[i])
		}
	}
}

// TestSelection picks elements of a list in any order.
func TestSelection(t *testing.T) {
	l, want := program(rand.New(rand.NewPCG(3, 4)), 100)
	picks := []uint32{7, 3, 3, uint32(len(want) - 1), 0}
	sel := Selection{List: l, Picks: picks}
	if err := sel.Check(); err != nil || sel.Len() != len(picks) {
		t.Fatalf("%v, %d elements", err, sel.Len())
	}
	bytes := uint64(0)
	for i, n := range picks {
		if sel.BytesTo(i) != bytes || sel.Number(i) != n || sel.At(i) != want[n] {
			t.Errorf("pick %d: %+v, %d bytes before", i, sel.At(i), sel.BytesTo(i))
		}
		bytes += want[n].Len
	}
	if sel.Bytes() != bytes {
		t.Errorf("%d bytes, want %d", sel.Bytes(), bytes)
	}
	sel.Picks = append(picks, l.Count)
	if err := sel.Check(); fi.ErrnoOf(err) != fi.EINVAL {
		t.Errorf("an element that the list does not have: %v", err)
	}
	if got := Bits([]uint64{1<<63 | 5, 0, 2}); !slices.Equal(got, []uint32{0, 2, 63, 129}) {
		t.Errorf("bits are elements %v", got)
	}
}

// TestSplit takes elements out of a selection: the mapped ones, and those that are not copied.
func TestSplit(t *testing.T) {
	l, want := program(rand.New(rand.NewPCG(5, 6)), 100)
	var mapped, others, left []uint32
	const from, failed = 10, 60
	for i := range want {
		n := uint32(i)
		if want[i].Mapped {
			mapped = append(mapped, n)
		} else {
			others = append(others, n)
		}
		if i >= failed || i >= from && !want[i].Direct {
			left = append(left, n)
		}
	}
	all := Selection{List: l}
	if got := all.Leave(nil, from, failed); !slices.Equal(got, left) {
		t.Errorf("left are %v, want %v", got, left)
	}
	if got := all.Mapped(); !slices.Equal(got, mapped) || !slices.Equal(all.Picks, others) {
		t.Errorf("mapped are %v, want %v", got, mapped)
	}
}

// span is bytes of a piece.
type span struct{ local, remote, n, key uint64 }

// spans are elements, neighbours joined.
func spans(list []dataplane.Element) (out []span) {
	for _, e := range list {
		if n := len(out); n != 0 {
			last := &out[n-1]
			if last.key == e.Key && last.local+last.n == e.Local && last.remote+last.n == e.Remote {
				last.n += e.Len
				continue
			}
		}
		out = append(out, span{e.Local, e.Remote, e.Len, e.Key})
	}
	return out
}

// TestBatch gathers the elements that a thread can copy, in their order, and finds where a copy has stopped.
func TestBatch(t *testing.T) {
	l, want := program(rand.New(rand.NewPCG(7, 8)), 3000)
	var direct, got []dataplane.Element
	var indirect, left []uint32
	for i, e := range want {
		if e.Direct {
			direct = append(direct, e)
		} else {
			indirect = append(indirect, uint32(i))
		}
	}
	sel, b := Selection{List: l}, new(Batch)
	for i := 0; i < sel.Len(); {
		began := i
		i = b.Gather(&sel, i, &left)
		total := uint64(0)
		for k := range b.N {
			got = append(got, dataplane.Element{
				Local: b.Local[k].Addr, Remote: b.Remote[k].Addr, Len: b.Local[k].Len, Key: b.Keys[k],
			})
			total += b.Local[k].Len
		}
		for moved := uint64(0); moved < total; moved += 1 + total/50 {
			before, stopped := uint64(0), began
			for ; !want[stopped].Direct || before+want[stopped].Len <= moved; stopped++ {
				if want[stopped].Direct {
					before += want[stopped].Len
				}
			}
			if at := b.Position(&sel, moved); at != stopped {
				t.Fatalf("with %d bytes element %d is the first, want %d", moved, at, stopped)
			}
		}
	}
	if !reflect.DeepEqual(spans(got), spans(direct)) || !slices.Equal(left, indirect) {
		t.Errorf("%d pieces for %d elements, %d left of %d", len(got), len(direct), len(left), len(indirect))
	}
}

// TestChunks cuts elements into chunks that cover each byte once, in order.
func TestChunks(t *testing.T) {
	l, want := program(rand.New(rand.NewPCG(9, 10)), 500)
	big := dataplane.Run{Local: 1 << 40, Remote: 1 << 41, Len: 3*wire.MaxShareChunk + 5, Key: 9, Direct: true}
	if err := Fit(l, &big, 1, everywhere); err != nil {
		t.Fatal(err)
	}
	Append(l, big)
	want = append(want, big.At(big.First))
	sel := Selection{List: l}
	var c Chunks
	for _, size := range []uint64{1, 4096, 64 << 10, 1 << 30} {
		c.Cut(&sel, sel.Bytes(), size)
		var got []dataplane.Element
		b := new(Batch)
		for i := range c.N() {
			first := c.Fill(b, i)
			if b.N == 0 || b.N > hw.MaxPieces || uint64(b.N) > c.Per || c.First(i) != c.Position(first, 0) {
				t.Fatalf("chunk %d of %d: %d pieces of %d", i, c.N(), b.N, c.Per)
			}
			if el := sel.At(c.First(i)); b.Local[0].Addr < el.Local || b.Local[0].Addr >= el.Local+el.Len {
				t.Fatalf("chunk %d begins at %#x, which is not in element %d", i, b.Local[0].Addr, c.First(i))
			}
			for k := range b.N {
				if b.Local[k].Len != b.Remote[k].Len || b.Local[k].Len > wire.MaxShareChunk {
					t.Fatalf("chunk %d: a piece of %d bytes", i, b.Local[k].Len)
				}
				got = append(got, dataplane.Element{
					Local: b.Local[k].Addr, Remote: b.Remote[k].Addr, Len: b.Local[k].Len, Key: b.Keys[k],
				})
			}
		}
		if !reflect.DeepEqual(spans(got), spans(want)) {
			t.Errorf("chunks of %d bytes: %d pieces do not cover the elements", size, len(got))
		}
	}
	if end := c.Position(0, sel.Bytes()); end != sel.Len()-1 {
		t.Errorf("behind all bytes is element %d", end)
	}
}

// BenchmarkGather is the cost of finding the piece of an element of 8 bytes.
func BenchmarkGather(b *testing.B) {
	l := empty()
	for i := range 10000 {
		run := dataplane.Run{Local: uint64(i+1) * 16, Remote: uint64(i*i) * 8, Len: 8, Key: 7, Direct: true}
		if err := Fit(l, &run, 1, everywhere); err != nil {
			b.Fatal(err)
		}
		Append(l, run)
	}
	batch, left := new(Batch), []uint32{}
	for n := 0; n < b.N; n += int(l.Count) {
		sel := Selection{List: l}
		for i := 0; i < sel.Len(); {
			i = batch.Gather(&sel, i, &left)
		}
	}
}
