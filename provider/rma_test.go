package provider

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/testseed"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/wire"
	"github.com/weft-fabric/weft/provider/names"
)

// region registers b, which lives as long as the test, for peers, under a key.
func (s *side) region(b []byte, key, access uint64) *MR {
	s.t.Helper()
	m, err := s.domain.RegMR(&fi.MRAttr{IOV: iovOf(b), Access: access, RequestedKey: key}, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = m.Close()
		runtime.KeepAlive(b)
	})
	return m
}

// settle has both sides progress until s has a completion, and returns it.
func settle(t testing.TB, s *side, others ...*side) (cq.Entry, cq.ErrEntry, bool) {
	t.Helper()
	var got [1]cq.Entry
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		for _, o := range append(others, s) {
			o.ep.Progress()
		}
		n, err := s.cq.Read(got[:])
		if n == 1 {
			return got[0], cq.ErrEntry{}, true
		}
		if fi.ErrnoOf(err) == fi.EAVAIL {
			e, err := s.cq.ReadErr()
			if err != nil {
				t.Fatal(err)
			}
			return cq.Entry{}, e, false
		}
	}
	t.Fatal("no completion")
	return cq.Entry{}, cq.ErrEntry{}, false
}

// post retries while there is no room.
func post(t testing.TB, f func() error, sides ...*side) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		err := f()
		if err == nil {
			return
		}
		if fi.ErrnoOf(err) != fi.EAGAIN {
			t.Fatal(err)
		}
		for _, s := range sides {
			s.ep.Progress()
		}
	}
	t.Fatal("no room for ever")
}

// forEachPath runs a test where the kernel lets peers read each other's memory
// and where it does not.
func forEachPath(t *testing.T, f func(t *testing.T, b *bench)) { forEachPathWith(t, rmaHints, f) }

func forEachPathWith(t *testing.T, hints func() *fi.Info, f func(t *testing.T, b *bench)) {
	for name, use := range map[string]config.Tri{"memory": config.Auto, "messages": config.No} {
		t.Run(name, func(t *testing.T) {
			f(t, newBench(t, func(c *config.Config) { c.UseCMA = use }, hints()))
		})
	}
}

func rmaHints() *fi.Info { return &fi.Info{Caps: fi.Msg | fi.Tagged | fi.RMA | fi.Atomic | fi.Source} }

// TestRMAAgainstModel runs random reads and writes of all sizes and cuts
// between two sides and compares memory with a model after each.
func TestRMAAgainstModel(t *testing.T) {
	forEachPath(t, func(t *testing.T, b *bench) {
		x, y := b.side(t), b.side(t)
		x.know(y)
		rmaAgainstModel(t, x, y, 400)
	})
}

// rmaAgainstModel has x do that many operations on memory of y.
func rmaAgainstModel(t *testing.T, x, y *side, count int) {
	t.Helper()
	const size = 1 << 20
	r := rand.New(rand.NewPCG(testseed.New(t), 0))
	remote, local, model := make([]byte, size), make([]byte, size), make([]byte, size)
	y.region(remote, 7, fi.RemoteRead|fi.RemoteWrite)
	for i := range local {
		local[i] = byte(r.Uint32())
	}
	for n := range count {
		length := r.IntN([...]int{16, 200, 9000, 100000, size}[r.IntN(5)])
		at, from := r.IntN(size-length+1), r.IntN(size-length+1)
		a := RMAArgs{
			IOV: randomParts(r, local[from:from+length]), Remote: remotePieces(r, uint64(at), uint64(length), 7),
			Dest: x.addr[y], Context: uint64(n), Read: r.IntN(2) == 0,
		}
		if !a.Read && length < 2000 && r.IntN(3) == 0 {
			a.Flags |= fi.Inject
		}
		if r.IntN(4) == 0 {
			a.Flags |= fi.DeliveryComplete
		}
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
		if a.Read {
			want := bytes.Clone(local)
			copy(want[from:], model[at:at+length])
			wantDone(t, x, y, uint64(n), fi.RMA|fi.Read)
			if !bytes.Equal(local, want) {
				t.Fatalf("operation %d: read of %d bytes at %d to %d is wrong", n, length, at, from)
			}
			continue
		}
		copy(model[at:], local[from:from+length])
		wantDone(t, x, y, uint64(n), fi.RMA|fi.Write)
		drain(x, y)
		if !bytes.Equal(remote, model) {
			t.Fatalf("operation %d: write of %d bytes from %d to %d is wrong", n, length, from, at)
		}
	}
}

// drain lets the target take what has been sent.
func drain(sides ...*side) {
	for range 3 {
		for _, s := range sides {
			s.ep.Progress()
		}
	}
}

func wantDone(t *testing.T, x, y *side, context, flags uint64) {
	t.Helper()
	e, bad, ok := settle(t, x, y)
	if !ok || e.Context != context || e.Flags != flags {
		t.Fatalf("completion %+v %+v, want context %d, flags %#x", e, bad, context, flags)
	}
}

// randomParts cuts a vector.
func randomParts(r *rand.Rand, b []byte) []fi.IOVec {
	var list []fi.IOVec
	for len(list) < wire.IOVLimit-1 && len(b) > 0 && r.IntN(2) == 0 {
		n := 1 + r.IntN(len(b))
		list = append(list, iovOf(b[:n])...)
		b = b[n:]
	}
	return append(list, iovOf(b)...)
}

func remotePieces(r *rand.Rand, at, n, key uint64) []fi.RMAIOVec {
	var list []fi.RMAIOVec
	for len(list) < wire.IOVLimit-1 && n > 0 && r.IntN(2) == 0 {
		take := 1 + r.Uint64N(n)
		list = append(list, fi.RMAIOVec{Addr: at, Len: take, Key: key})
		at, n = at+take, n-take
	}
	return append(list, fi.RMAIOVec{Addr: at, Len: n, Key: key})
}

// TestRMARefused: what the target refuses is an error completion, and its
// memory stays.
func TestRMARefused(t *testing.T) {
	forEachPath(t, func(t *testing.T, b *bench) {
		x, y := b.side(t), b.side(t)
		x.know(y)
		memory, local := make([]byte, 20000), bytes.Repeat([]byte{9}, 20000)
		y.region(memory[:10000], 1, fi.RemoteRead)
		y.region(memory[:10000], 2, fi.RemoteWrite)
		gone := y.region(memory[:10000], 3, fi.RemoteRead|fi.RemoteWrite)
		if err := gone.Close(); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			read         bool
			key, addr, n uint64
			want         fi.Errno
		}{
			"write without right":   {false, 1, 0, 8, fi.EACCES},
			"read without right":    {true, 2, 0, 8, fi.EACCES},
			"large write, no right": {false, 1, 0, 10000, fi.EACCES},
			"large read, no right":  {true, 2, 0, 10000, fi.EACCES},
			"unknown key":           {false, 77, 0, 8, fi.ENOKEY},
			"large, unknown key":    {false, 77, 0, 9999, fi.ENOKEY},
			"closed region":         {true, 3, 0, 8, fi.ENOKEY},
			"write past the end":    {false, 2, 9993, 8, fi.EACCES},
			"write across the end":  {false, 2, 5000, 9000, fi.EACCES},
			"read past the end":     {true, 1, 10000, 1, fi.EACCES},
			"an address that wraps": {false, 2, ^uint64(0) - 3, 8, fi.EACCES},
			"large and wraps":       {true, 1, ^uint64(0) - 3, 9000, fi.EACCES},
		} {
			a := RMAArgs{IOV: iovOf(local[:c.n]), Remote: []fi.RMAIOVec{{Addr: c.addr, Len: c.n, Key: c.key}},
				Dest: x.addr[y], Read: c.read, Context: 5}
			post(t, func() error { return x.ep.RMA(&a) }, x, y)
			if _, e, ok := settle(t, x, y); ok || e.Err != c.want || e.Context != 5 {
				t.Errorf("%s: completion %v %+v, want %v", name, ok, e, c.want)
			}
		}
		if !bytes.Equal(memory, make([]byte, len(memory))) {
			t.Error("the target's memory was touched")
		}
	})
}

// TestWriteData: CQ data arrives once, after the payload, and counters count.
func TestWriteData(t *testing.T) {
	forEachPath(t, func(t *testing.T, b *bench) {
		x, y := b.pair(t)
		memory := make([]byte, 1<<20)
		y.region(memory, 1, fi.RemoteWrite)
		for i, n := range []int{0, 1, 100, 5000, 70000, 1 << 20} {
			local := bytes.Repeat([]byte{byte(i + 1)}, n)
			a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: uint64(n), Key: 1}}, Dest: x.addr[y],
				HasData: true, Data: uint64(i) << 40}
			post(t, func() error { return x.ep.RMA(&a) }, x, y)
			e, bad, ok := settle(t, y, x)
			if !ok || e.Data != uint64(i)<<40 || e.Flags != fi.RMA|fi.RemoteWrite|fi.RemoteCQData ||
				e.Src != y.addr[x] {
				t.Fatalf("%d bytes: %+v %+v", n, e, bad)
			}
			if !bytes.Equal(memory[:n], local) {
				t.Fatalf("%d bytes: the data came before the payload", n)
			}
			wantDone(t, x, y, 0, fi.RMA|fi.Write)
		}
	})
}

// TestWriteDataRefused: no data of a write of one element that begins before its region and ends in it, of however many
// messages or segments, though the last ones lie in it, and nothing is written before it. One that begins in the region
// is admitted.
func TestWriteDataRefused(t *testing.T) {
	hints := rmaHints()
	hints.Domain = &fi.DomainAttr{MRMode: fi.MRProvKey | fi.MRVirtAddr | fi.MRAllocated}
	t.Run("memory", func(t *testing.T) { writeDataRefused(t, newBench(t, nil, hints), false) })
	t.Run("messages", func(t *testing.T) {
		writeDataRefused(t, newBench(t, func(c *config.Config) { c.UseCMA = config.No }, hints), false)
	})
	t.Run("udp", func(t *testing.T) {
		writeDataRefused(t, newBench(t, func(c *config.Config) {
			c.UDP, c.SHMDir, c.SHMAcross = config.Yes, t.TempDir(), config.No
		}, hints), true)
	})
}

func writeDataRefused(t *testing.T, b *bench, remote bool) {
	x, y := b.pair(t)
	if remote {
		b.domain.local.Use(func() ([]names.Interface, error) { return nil, nil })
	}
	const size = 9 << 20
	memory := make([]byte, size+100<<10)
	region := memory[size:]
	m := y.region(region, 0, fi.RemoteWrite)
	base := uint64(iovOf(region)[0].Base)
	for _, n := range []uint64{100<<10 + 1, 150 << 10, 1 << 20, 8 << 20} {
		local := bytes.Repeat([]byte{7}, int(n))
		a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Addr: base + 100<<10 - n, Len: n, Key: m.Key()}},
			Dest: x.addr[y], HasData: true, Data: 9}
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
		if e, bad, ok := settle(t, x, y); ok || bad.Err != fi.EACCES {
			t.Errorf("%d bytes: %+v %+v", n, e, bad)
		}
		for range 10 {
			y.ep.Progress()
		}
		var got [1]cq.Entry
		if k, err := y.cq.Read(got[:]); k > 0 || fi.ErrnoOf(err) != fi.EAGAIN {
			t.Errorf("%d bytes: the target has %+v, %v", n, got[0], err)
		}
		if !bytes.Equal(memory[:size], make([]byte, size)) {
			t.Fatalf("%d bytes: written before the region", n)
		}
	}
	inside := y.region(memory, 0, fi.RemoteWrite)
	a := RMAArgs{IOV: iovOf(make([]byte, size)), Dest: x.addr[y], HasData: true, Data: 9,
		Remote: []fi.RMAIOVec{{Addr: base - size, Len: size, Key: inside.Key()}}}
	post(t, func() error { return x.ep.RMA(&a) }, x, y)
	if e, bad, ok := settle(t, y, x); !ok || e.Data != 9 {
		t.Errorf("%+v %+v", e, bad)
	}
	wantDone(t, x, y, 0, fi.RMA|fi.Write)
}

// TestWriteDataWaits has a write of several elements whose data waits for answers leave progress to their arrival.
func TestWriteDataWaits(t *testing.T) {
	forEachPath(t, func(t *testing.T, b *bench) {
		x, y := b.pair(t)
		y.region(make([]byte, 1<<20), 1, fi.RemoteWrite)
		local := make([]byte, 16)
		a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: 8, Key: 1}, {Addr: 8, Len: 8, Key: 1}},
			Dest: x.addr[y], HasData: true, Data: 7}
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
		for range 100 {
			x.ep.Progress()
		}
		leased := leasedOf(x.ep)
		leased.rx.base.acquire()
		if all, answers := leased.initiated.Requests(); all != answers {
			t.Errorf("%d requests are left, %d wait for answers", all, answers)
		}
		leased.rx.give()
		if e, bad, ok := settle(t, y, x); !ok || e.Data != 7 {
			t.Fatalf("%+v %+v", e, bad)
		}
		wantDone(t, x, y, 0, fi.RMA|fi.Write)
	})
}

// TestAtomicsAgainstModel runs random atomic operations over the wire and
// compares with the same performed at home, which provider/atomics tests.
func TestAtomicsAgainstModel(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	for seed := range seedCount(t, 4) {
		atomicsAgainstModel(t, x, y, rand.New(rand.NewPCG(seed, 6)))
	}
}

func atomicsAgainstModel(t *testing.T, x, y *side, r *rand.Rand) {
	t.Helper()
	memory, model := make([]uint64, 1024), make([]uint64, 1024)
	all := unsafe.Slice((*byte)(unsafe.Pointer(&memory[0])), 8192)
	region, err := y.domain.RegMR(&fi.MRAttr{IOV: iovOf(all), Access: fi.RemoteRead | fi.RemoteWrite, RequestedKey: 1},
		0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = region.Close() }()
	for n := range 500 {
		d, op, k := fi.Datatype(r.IntN(int(fi.DoubleComplex)+1)), fi.Op(r.IntN(int(fi.OpDiff)+1)), atomics.Kind(r.IntN(3))
		count, err := x.ep.AtomicCount(k, d, op)
		if err != nil {
			continue
		}
		size := uint64(d.Size())
		count = 1 + r.Uint64N(min(count, 64))
		at := 16 * r.Uint64N((8192-count*size)/16+1)
		operand, compare, result := random(r, count*size), random(r, count*size), make([]byte, count*size)
		a := AtomicArgs{Kind: k, Op: op, Datatype: d, Remote: []fi.RMAIOVec{{Addr: at, Len: count * size, Key: 1}},
			Dest: x.addr[y], Context: uint64(n)}
		want := make([]byte, count*size)
		j := atomics.Job{Op: op, Datatype: d, Count: int(count), Target: unsafe.Add(unsafe.Pointer(&model[0]), at),
			Result: unsafe.Pointer(&want[0])}
		flags := fi.Atomic | fi.Write
		if op != fi.OpRead {
			a.Operand, j.Operand = iovOf(operand), unsafe.Pointer(&operand[0])
		}
		if k == atomics.Compare {
			a.Compare, j.Compare = iovOf(compare), unsafe.Pointer(&compare[0])
		}
		if k != atomics.Base {
			a.Result, flags = randomParts(r, result), fi.Atomic|fi.Read
		}
		post(t, func() error { return x.ep.Atomic(&a) }, x, y)
		if !atomics.Apply(&j) {
			t.Fatal("the model refuses")
		}
		wantDone(t, x, y, uint64(n), flags)
		if k != atomics.Base && !bytes.Equal(result, want) {
			t.Fatalf("operation %d on datatype %d fetched %x, want %x", op, d, result, want)
		}
		if !bytes.Equal(all, unsafe.Slice((*byte)(unsafe.Pointer(&model[0])), 8192)) {
			t.Fatalf("operation %d on datatype %d: memory differs", op, d)
		}
	}
}

func random(r *rand.Rand, n uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = [...]byte{0, 1, 0x3F, byte(r.Uint32())}[r.IntN(4)]
	}
	return b
}

// TestInjectNothing has endpoints where nothing but messages without data can be injected.
func TestInjectNothing(t *testing.T) {
	b := newBenchAt(t, "127.0.0.1", map[string]string{"FI_WEFT_INJECT_SIZE": "0"}, nil, rmaHints())
	x, y := b.pair(t)
	if n := b.info.Tx.InjectSize; n != 0 {
		t.Fatalf("inject size %d", n)
	}
	one := []byte{7}
	send := SendArgs{IOV: iovOf(one), Dest: x.addr[y], Tagged: true, Inject: true}
	wantErrno(t, x.ep.Send(&send), fi.EINVAL, "a byte")
	y.recv(RecvArgs{Src: fi.AddrUnspec, Tagged: true, Context: 1}, x)
	x.send(SendArgs{Dest: x.addr[y], Tagged: true, Inject: true}, y)
	if e := y.completion(x); e.Context != 1 || e.Len != 0 {
		t.Errorf("%+v", e)
	}
	remote := make([]byte, 1)
	y.region(remote, 7, fi.RemoteWrite)
	post(t, func() error {
		return x.ep.RMA(&RMAArgs{IOV: iovOf(one), Remote: []fi.RMAIOVec{{Len: 1, Key: 7}}, Dest: x.addr[y], Context: 2})
	}, x, y)
	wantDone(t, x, y, 2, fi.RMA|fi.Write)
	if remote[0] != 7 {
		t.Error("nothing was written")
	}
}
