package verbs

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv/null"
	"github.com/weft-fabric/weft/internal/mem"
)

// gatherBench is a chainBench whose requests may have so many local pieces.
func gatherBench(t *testing.T, pieces uint32) *chainBench {
	b := newChainBench(t)
	b.e.mem.queue.GatherMax, b.e.mem.queue.GatherReads = pieces, pieces
	m := b.local[0].Memory.(*Memory)
	m.region.Len, m.region.Access = 1<<20, hw.LocalWrite|hw.RemoteRead|hw.RemoteWrite
	b.key, _ = unpackKey(m.PackKey(nil))
	b.d.pd = m.d.pd
	b.svc = &service{wake: make(chan struct{}, 1)}
	return b
}

// moved is that a byte moved between an address here and one at the peer.
type moved struct {
	read        bool
	here, there uint64
	fenced      bool // behind a fence, said of the first byte of an operation
}

// movedBy appends what a request moves, or an operation.
func movedBy(to []moved, opcode, flags uint32, there uint64, pieces []ibv.SGE) []moved {
	fenced := flags&ibv.Fence != 0
	for _, s := range pieces {
		for k := range uint64(s.Len) {
			to = append(to, moved{opcode == ibv.OpRead, s.Addr + k, there, fenced})
			there++
			fenced = false
		}
	}
	return to
}

// TestGather has random operations go, and compares what the device is asked to move with what each was to move.
func TestGather(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	gathered := 0
	for round := range 200 {
		limit := []uint32{0, 1, 2, 4, ibv.MaxGather}[round%5]
		b := gatherBench(t, limit)
		if round%2 != 0 {
			b.e.mem.queue.GatherReads = 3
		}
		var want, got []moved
		ops, at, opcode, ended := 1+r.IntN(30), uint64(0), uint32(ibv.OpWrite), 0
		q := &b.e.mem.queue
		before := null.Taken()
		q.stop() // so that all are posted at once
		for n := range ops {
			if r.IntN(5) == 0 {
				at = r.Uint64N(1000)
			}
			if r.IntN(8) == 0 {
				opcode = ibv.OpWrite + ibv.OpRead - opcode
			}
			if r.IntN(8) == 0 {
				q.fence.Store(true)
			}
			c := &hw.Completion{More: r.IntN(2) == 0, Func: func(*hw.Completion) { ended++ }}
			c.Expect(1)
			fence := q.fence.Load()
			var local []hw.Segment
			var pieces []ibv.SGE
			for range 1 + r.IntN(3) {
				s := b.local[0]
				from, n := r.IntN(1000), 1+r.IntN(9)
				s.Addr, s.Len = named(1<<20+uint64(from)), n
				local = append(local, s)
				pieces = append(pieces, ibv.SGE{Addr: 1<<20 + uint64(from), Len: uint32(n)})
			}
			if _, err := b.e.zcopy(opcode, local, at, b.key, c); err != nil {
				t.Fatalf("operation %d: %v", n, err)
			}
			flags := uint32(0)
			if fence {
				flags = ibv.Fence
			}
			want = movedBy(want, opcode, flags, b.key[2]+at, pieces)
			for _, s := range pieces {
				at += uint64(s.Len)
			}
		}
		q.start()
		taken := int(null.Taken() - before)
		if limit <= 1 && taken != ops || taken > ops {
			t.Errorf("%d requests for %d operations with %d pieces", taken, ops, limit)
		}
		gathered += ops - taken
		for n := taken - 1; n >= 0; n-- {
			w := null.LastRequest(n)
			most := limit
			if w.Opcode == ibv.OpRead {
				most = min(most, q.GatherReads)
			}
			if len(w.SGE) > max(3, int(most)) {
				t.Errorf("a request has %d pieces, at most %d", len(w.SGE), most)
			}
			got = movedBy(got, w.Opcode, w.Flags, w.RemoteAddr, w.SGE)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: %d operations move %d bytes, requests %d", round, ops, len(want), len(got))
		}
		b.e.Uncork()
		for range 4 {
			b.device()
		}
		if ended != ops {
			t.Fatalf("round %d: %d of %d have ended", round, ended, ops)
		}
	}
	if gathered < 200 {
		t.Errorf("only %d operations went with others", gathered)
	}
}

// TestGatherRequests: operations of which the peer's bytes follow each other are as many requests as the device's
// pieces make, long ones as their bytes do.
func TestGatherRequests(t *testing.T) {
	for _, c := range []struct {
		pieces   uint32
		len      int
		requests uint64
	}{{4, 64, 8}, {16, 64, 2}, {16, 64 << 10, 8}, {16, 512 << 10, 32}, {0, 64, 32}} {
		b := gatherBench(t, c.pieces)
		q := &b.e.mem.queue
		q.stop()
		before, bells := null.Taken(), null.Doorbells()
		m := b.local[0].Memory.(*Memory)
		m.region.Len = 32 * c.len
		b.key[3] = uint64(m.region.Len)
		for n := range 32 {
			s := hw.Segment{Addr: named(1<<20 + uint64(31-n)*uint64(c.len)), Len: c.len, Memory: m}
			comp := &hw.Completion{More: true}
			comp.Expect(1)
			if _, err := b.e.PutZcopy([]hw.Segment{s}, uint64(n*c.len), b.key, comp); err != nil {
				t.Fatal(err)
			}
		}
		q.start()
		if n := null.Taken() - before; n != c.requests || null.Doorbells()-bells != 1 {
			t.Errorf("%d pieces of %d bytes: %d requests, %d doorbells, want %d, 1", c.pieces, c.len, n,
				null.Doorbells()-bells, c.requests)
		}
	}
}

// TestGatherFails: of a request of several operations that the peer refuses each is tried by itself, and those fail
// that are refused then. If the path is lost all of it is of unknown outcome.
func TestGatherFails(t *testing.T) {
	if err := ibv.Load(ibv.DefaultLibrary); err != nil {
		t.Skipf("what a failure is called stands in the library: %v", err)
	}
	for _, lost := range []bool{false, true} {
		b := gatherBench(t, ibv.MaxGather)
		q := &b.e.mem.queue
		q.stop()
		var errs [12]error
		var ends []int
		for n := range errs {
			c := &hw.Completion{More: true, Idempotent: lost && n != 1, Func: func(c *hw.Completion) {
				errs[n] = c.Err()
				ends = append(ends, n)
			}}
			c.Expect(1)
			if _, err := b.e.PutZcopy(b.local, uint64(n*64), b.key, c); err != nil {
				t.Fatal(err)
			}
		}
		q.start()
		fails := func(pos uint64, status uint32) {
			b.Iface.ended(&ibv.Done{ID: queueID(classMemory, 0) | uint64(q.Gen&0xff)<<32 | pos, Status: status})
		}
		if taken := null.LastRequest(0); len(taken.SGE) != len(errs) {
			t.Fatalf("a request of %d pieces", len(taken.SGE))
		}
		if lost { // one of them may not be done twice
			fails(11, ibv.StatusRetry)
			if !errors.Is(b.e.Err(), hw.ErrPeerDead) || !errors.Is(b.e.Err(), hw.ErrPathLost) {
				t.Errorf("the endpoint works on: %v", b.e.Err())
			}
			continue
		}
		fails(11, ibv.StatusAccess)
		if len(ends) != 0 || b.e.Err() != nil {
			t.Fatalf("%v have ended, %v", ends, b.e.Err())
		}
		before := null.Taken()
		q.start()
		if n := null.Taken() - before; n != 12 {
			t.Errorf("%d requests, all are to go alone", n)
		}
		fails(5, ibv.StatusAccess)
		q.start()
		b.completes(11 | uint64(q.Gen&0xff)<<32)
		b.Progress(64)
		for n, err := range errs {
			if n == 5 != errors.Is(err, hw.ErrKey) || n != 5 && err != nil {
				t.Errorf("operation %d: %v", n, err)
			}
		}
		if len(ends) != len(errs) {
			t.Errorf("%d have ended", len(ends))
		}
		// What comes then goes together again.
		before = null.Taken()
		q.stop()
		for n := range 4 {
			if _, err := b.e.PutZcopy(b.local, uint64(n*64), b.key, nil); err != nil {
				t.Fatal(err)
			}
		}
		if q.start(); null.Taken() != before+1 {
			t.Errorf("%d requests after that", null.Taken()-before)
		}
	}
}

// TestGatherDevice: a device writes and reads what goes together as if it went alone.
func TestGatherDevice(t *testing.T) {
	a, b := open(t, Config{}), open(t, Config{})
	defer func() { _ = errors.Join(a.Close(), b.Close()) }()
	there, err := a.Connect(b.Address())
	if err != nil {
		t.Fatal(err)
	}
	e := there.(*Endpoint)
	const count, size = 300, 40
	source, target := allocated(t, a, 2*count*size, hw.LocalWrite), allocated(t, b, count*size, allAccess)
	key, err := a.Memory().UnpackKey(target.PackKey(nil))
	if err != nil {
		t.Fatal(err)
	}
	var left atomic.Int64
	r := rand.New(rand.NewPCG(1, 1))
	at := r.Perm(count) // where here each piece of what is there lies
	move := func(what string, f func([]hw.Segment, uint64, hw.RemoteKey, *hw.Completion) (hw.Status, error)) {
		left.Store(count)
		for n, until := 0, time.Now().Add(time.Minute); left.Load() != 0; {
			if time.Now().After(until) {
				t.Fatalf("%s: %d do not end", what, left.Load())
			}
			if n < count {
				here := named(mem.Address(bytesOf(source)[2*size*at[n]:]))
				c := &hw.Completion{More: n < count-1, Func: func(c *hw.Completion) {
					if left.Add(-1); c.Err() != nil {
						t.Errorf("%s: %v", what, c.Err())
					}
				}}
				c.Expect(1)
				_, err := f([]hw.Segment{{Addr: here, Len: size, Memory: source}}, uint64(n*size), key, c)
				if n++; err == nil {
					continue
				} else if n--; !errors.Is(err, hw.ErrNoResource) {
					t.Fatal(err)
				}
				e.Uncork()
			}
			a.Progress(16)
			b.Progress(16)
		}
	}
	for n := range count {
		copy(bytesOf(source)[2*size*at[n]:][:size], bytes.Repeat([]byte{byte(n)}, size))
	}
	move("put", e.PutZcopy)
	for n := range count {
		if !bytes.Equal(bytesOf(target)[n*size:][:size], bytes.Repeat([]byte{byte(n)}, size)) {
			t.Fatalf("piece %d was not put", n)
		}
		copy(bytesOf(target)[n*size:], bytes.Repeat([]byte{byte(n + 1)}, size))
	}
	move("get", e.GetZcopy)
	for n := range count {
		if !bytes.Equal(bytesOf(source)[2*size*at[n]:][:size], bytes.Repeat([]byte{byte(n + 1)}, size)) {
			t.Fatalf("piece %d was not got", n)
		}
	}
	if n := e.mem.queue.GatherMax; n < 2 {
		t.Errorf("a request has %d pieces", n)
	}
}

// TestGatherPieces: a queue pair for one-sided operations takes as many pieces as the device lets it, one for messages
// no more than a message has. What bounds reads alone bounds nothing else.
func TestGatherPieces(t *testing.T) {
	for _, c := range []struct{ most, reads, limit, want, wantReads, iov int }{
		{32, 0, 32, ibv.MaxGather, ibv.MaxGather, ibv.MaxSGE},
		{32, 30, 32, ibv.MaxGather, ibv.MaxGather, ibv.MaxSGE},
		{32, 6, 32, ibv.MaxGather, 6, ibv.MaxSGE},
		{32, 2, 32, ibv.MaxGather, 2, 2},
		{32, 1, 32, ibv.MaxGather, 1, 1},
		{8, 0, 32, 8, 8, ibv.MaxSGE},
		{2, 0, 32, 2, 2, 2},
		{1, 0, 32, 1, 1, 1},
		{32, 0, 10, ibv.MaxSGE, ibv.MaxSGE, ibv.MaxSGE},
		{32, 2, 10, ibv.MaxSGE, 2, 2},
	} {
		b := gatherBench(t, 0)
		b.d.attr.MaxSGE, b.d.attr.MaxReadSGE = c.most, c.reads
		if n := b.Attr().MaxIOV; n != c.iov {
			t.Errorf("%+v: %d local segments of an operation", c, n)
		}
		b.blocks = &blockPool{pd: b.d.pd, depth: 64}
		b.e.mem.state.Store(memoryNone)
		b.e.mem.queue = queue{}
		null.LimitQP(c.limit, slotBytes)
		if _, err := b.e.memoryQueue(); !errors.Is(err, hw.ErrNoResource) {
			t.Fatal(err)
		}
		q := &b.e.mem.queue
		if reads := int(min(q.GatherMax, q.GatherReads)); null.Pieces() != c.want || int(q.GatherMax) != c.want ||
			reads != c.wantReads {
			t.Errorf("%+v: a queue pair for %d pieces, requests of %d, and of %d that read", c, null.Pieces(),
				q.GatherMax, reads)
		}
		if err := b.e.newMessageQP(); err != nil || null.Pieces() != min(ibv.MaxSGE, c.most) {
			t.Errorf("%+v: for messages %d, %v", c, null.Pieces(), err)
		}
		if err := b.blocks.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPiecesOfReads: an operation may have as many local segments as the device takes for its kind.
func TestPiecesOfReads(t *testing.T) {
	b := gatherBench(t, 0)
	b.d.attr.MaxReadSGE = 1
	for n := 1; n <= ibv.MaxSGE+1; n++ {
		local := slices.Repeat(b.local, n)
		for opcode, most := range map[uint32]int{ibv.OpWrite: ibv.MaxSGE, ibv.OpRead: 1} {
			_, err := b.e.zcopy(opcode, local, 0, b.key, nil)
			if n <= most && err != nil || n > most && !errors.Is(err, hw.ErrInvalid) {
				t.Errorf("%d segments, at most %d: %v", n, most, err)
			}
		}
	}
}

// TestGatherInline: a device that refuses bytes in requests takes as many pieces as without, and one that refuses so
// many pieces takes bytes.
func TestGatherInline(t *testing.T) {
	for _, c := range []struct{ pieces, inline, want, wantInline int }{
		{32, slotBytes, ibv.MaxGather, slotBytes},
		{32, slotBytes - 1, ibv.MaxGather, 0},
		{32, 0, ibv.MaxGather, 0},
		{10, slotBytes, ibv.MaxSGE, slotBytes},
		{10, 0, ibv.MaxSGE, 0},
	} {
		b := gatherBench(t, ibv.MaxGather)
		b.d.attr.MaxSGE = 32
		q := &b.e.mem.queue
		q.stop()
		null.LimitQP(c.pieces, c.inline)
		if err := b.e.newMemoryQP(); err != nil {
			t.Fatal(err)
		}
		if null.Pieces() != c.want || null.Inline() != c.wantInline || int(q.GatherMax) != c.want {
			t.Errorf("%+v: a queue pair for %d pieces and %d bytes, requests of %d", c, null.Pieces(), null.Inline(),
				q.GatherMax)
		}
	}
	b := gatherBench(t, ibv.MaxGather)
	b.d.attr.MaxSGE = 32
	b.e.mem.queue.stop()
	null.LimitQP(0, 0)
	err := b.e.newMemoryQP()
	if n := b.e.mem.queue.GatherMax; !errors.Is(err, hw.ErrNoResource) || n != ibv.MaxGather {
		t.Errorf("a device without room: %v, requests of %d from then on", err, n)
	}
}
