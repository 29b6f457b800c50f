package provider

import (
	"bytes"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/claim"
)

// lendPiece is the length in bytes of operations that are lent here.
const lendPiece = 16 << 10

// lendBench has operations of lendPiece bytes lent, and none shared by chunks.
func lendBench(t *testing.T) (x, y *side) {
	t.Helper()
	b := newBench(t, func(c *config.Config) { c.RMALendSize, c.RMAAssistSize = lendPiece, 0 }, rmaHints())
	return b.pair(t)
}

// piece posts an operation on piece n of both memories.
func (s *side) piece(to *side, local []byte, n int, read bool) {
	s.t.Helper()
	at := n * lendPiece
	a := RMAArgs{
		IOV: iovOf(local[at : at+lendPiece]), Remote: []fi.RMAIOVec{{Addr: uint64(at), Len: lendPiece, Key: 1}},
		Dest: s.addr[to], Context: uint64(n), Read: read,
	}
	post(s.t, func() error { return s.ep.RMA(&a) }, s)
}

// lent is how many operations are offered and not ended.
func (s *side) lent() int { return int(s.ep.shares.waiting.Load()) }

// TestLendAgainstModel has a target that polls do every other one of random operations,
// posted some at a time, and compares memory with a model.
func TestLendAgainstModel(t *testing.T) {
	x, y := lendBench(t)
	const places = 32
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	remote, local := make([]byte, places*lendPiece), make([]byte, places*lendPiece)
	y.region(remote, 1, fi.RemoteRead|fi.RemoteWrite)
	y.polling()
	for i := range local {
		local[i], remote[i] = byte(r.Uint32()), byte(i>>9)
	}
	model, want := bytes.Clone(remote), bytes.Clone(local)
	end := time.Now().Add(20 * time.Second)
	for n := 0; n < 100 || x.rounds().copied() < 20; n++ {
		count := 1 + r.IntN(places)
		for _, k := range r.Perm(places)[:count] {
			read := r.IntN(2) == 0
			if from, to := k*lendPiece, (k+1)*lendPiece; read {
				copy(want[from:to], model[from:])
			} else {
				copy(model[from:to], want[from:])
			}
			x.piece(y, local, k, read)
		}
		x.completions(count)
		if !bytes.Equal(local, want) || !bytes.Equal(remote, model) {
			t.Fatalf("batch %d: memory differs", n)
		}
		if time.Now().After(end) {
			t.Fatalf("the target has done %d of %d offers, words %x", x.rounds().copied(), x.rounds().offers, *x.rounds().words)
		}
	}
	if f := x.ep.linkAt(0).inFlight.Load(); f != 0 || x.lent() != 0 {
		t.Errorf("%d operations are in flight, %d lent", f, x.lent())
	}
}

// TestLendAlone: a target that does not poll gets two offers, and the initiator takes the operations
// back when it has nothing else to read, or has looked often.
func TestLendAlone(t *testing.T) {
	x, y := lendBench(t)
	const places = 64
	memory, local := make([]byte, places*lendPiece), pattern(places*lendPiece, 3)
	y.region(memory, 1, fi.RemoteWrite)
	posted := lendOne(t, x, y, local)
	for n := range lendPatience { // completions are there to be read, so it waits for the target
		if x.lent() != 1 {
			t.Fatalf("taken back after %d looks", n)
		}
		x.ep.Progress()
	}
	if x.lent() != 0 {
		t.Error("not taken back")
	}
	x.completions(posted)
	posted = lendOne(t, x, y, local)
	x.completions(posted) // it is taken back when all others are read
	for n := range places {
		x.piece(y, local, n, false)
	}
	x.completions(places)
	if r := x.rounds(); r.offers != claim.MaxRounds || r.copied() != 0 || !bytes.Equal(memory, local) {
		t.Errorf("%d offers, %d done by the target", r.offers, r.copied())
	}
}

// TestLendNotToMeet: what writes the same memory as the operation before is not lent, nor what
// is posted by an application that waits for each.
func TestLendNotToMeet(t *testing.T) {
	x, y := lendBench(t)
	memory, local := make([]byte, 4*lendPiece), pattern(4*lendPiece, 3)
	y.region(memory, 1, fi.RemoteRead|fi.RemoteWrite)
	for _, read := range []bool{false, true} {
		for range 20 {
			x.piece(y, local, 1, read)
		}
		x.completions(20)
		for n := range 20 {
			x.piece(y, local, n%4, read)
			x.completions(1)
		}
	}
	if r := x.rounds(); r.offers > 2 { // the first of each kind has none before it
		t.Errorf("%d offers", r.offers)
	}
}

// lendOne posts until an operation is lent to a target that does not poll, and
// returns how many operations wait to be read.
func lendOne(t *testing.T, x, y *side, local []byte) int {
	t.Helper()
	for n := range 8 {
		x.piece(y, local, n, false)
		if x.lent() != 0 {
			return n + 1
		}
	}
	t.Fatal("none is lent")
	return 0
}

// TestLendLost: a lent operation whose target is gone ends with an error, whether the target has
// taken it or not.
func TestLendLost(t *testing.T) {
	for _, taken := range []bool{false, true} {
		x, y := lendBench(t)
		memory, local := make([]byte, 8*lendPiece), pattern(8*lendPiece, 3)
		y.region(memory, 1, fi.RemoteWrite)
		n := lendOne(t, x, y, local)
		if r := x.rounds(); taken {
			if _, ok := claim.TakeBack(&r.words[0], uint64(r.round), 1); !ok {
				t.Fatal("nothing to take")
			}
		}
		y.close()
		x.completions(n - 1)
		if _, bad, ok := settle(t, x); ok || bad.Err != fi.ECONNRESET {
			t.Errorf("taken %v: %+v", taken, bad)
		}
		if f := x.ep.linkAt(0).inFlight.Load(); f != 0 || x.lent() != 0 {
			t.Errorf("%d operations are in flight, %d lent", f, x.lent())
		}
	}
}

// TestLendRegionEnds: an operation that is lent on a region that ends is refused.
func TestLendRegionEnds(t *testing.T) {
	x, y := lendBench(t)
	memory, local := make([]byte, 8*lendPiece), pattern(8*lendPiece, 3)
	m, err := y.domain.RegMR(&fi.MRAttr{IOV: iovOf(memory), Access: fi.RemoteWrite, RequestedKey: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := lendOne(t, x, y, local)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	before := bytes.Clone(memory)
	y.polling()
	x.completions(n - 1)
	if _, bad, ok := settle(t, x); ok || bad.Err != fi.ENOKEY {
		t.Errorf("%+v", bad)
	}
	if !bytes.Equal(before, memory) {
		t.Error("memory was written after the end of its registration")
	}
}

// TestLendClosing: closing an endpoint takes back what the target has not taken, and waits for
// what it has.
func TestLendClosing(t *testing.T) {
	for _, taken := range []bool{false, true} {
		x, y := lendBench(t)
		memory, local := make([]byte, 8*lendPiece), pattern(8*lendPiece, 3)
		y.region(memory, 1, fi.RemoteWrite)
		lendOne(t, x, y, local)
		r := x.rounds()
		var finished atomic.Bool
		if taken {
			claim.TakeBack(&r.words[0], uint64(r.round), 1)
			time.AfterFunc(50*time.Millisecond, func() {
				finished.Store(true)
				claim.Count(&r.words[1], false)
			})
		}
		x.close()
		if finished.Load() != taken {
			t.Errorf("taken %v: closed while the target may read the buffer, or waited for nothing", taken)
		}
	}
}
