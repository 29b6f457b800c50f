package provider

import (
	"bytes"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/testseed"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/rma"
)

// delegatePiece is the length in bytes of operations that are delegated here.
const delegatePiece = 16 << 10

// delegateBench has operations of delegatePiece bytes delegated, and none shared by chunks.
func delegateBench(t *testing.T) (x, y *side) {
	t.Helper()
	b := newBench(t, func(c *config.Config) { c.RMADelegateSize, c.RMAAssistSize = delegatePiece, 0 }, rmaHints())
	return b.pair(t)
}

// piece posts an operation on piece n of both memories.
func (s *side) piece(to *side, local []byte, n int, read bool) {
	s.t.Helper()
	at := n * delegatePiece
	a := RMAArgs{
		IOV: iovOf(local[at : at+delegatePiece]), Remote: []fi.RMAIOVec{{Addr: uint64(at), Len: delegatePiece, Key: 1}},
		Dest: s.addr[to], Context: uint64(n), Read: read,
	}
	post(s.t, func() error { return s.ep.RMA(&a) }, s)
}

// delegated is how many operations are offered and not ended.
func (s *side) delegated() int { return s.ep.base.rmas.Waiting() }

// TestDelegateAgainstModel has a target that polls do every other one of random operations,
// posted some at a time, and compares memory with a model.
func TestDelegateAgainstModel(t *testing.T) {
	x, y := delegateBench(t)
	const places = 32
	r := rand.New(rand.NewPCG(testseed.New(t), 0))
	remote, local := make([]byte, places*delegatePiece), make([]byte, places*delegatePiece)
	y.region(remote, 1, fi.RemoteRead|fi.RemoteWrite)
	y.polling()
	for i := range local {
		local[i], remote[i] = byte(r.Uint32()), byte(i>>9)
	}
	model, want := bytes.Clone(remote), bytes.Clone(local)
	end := time.Now().Add(20 * time.Second)
	for n := 0; n < 100 || copied(x.rounds()) < 20; n++ {
		count := 1 + r.IntN(places)
		for _, k := range r.Perm(places)[:count] {
			read := r.IntN(2) == 0
			if from, to := k*delegatePiece, (k+1)*delegatePiece; read {
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
			t.Fatalf("the target has done %d of %d offers, words %x", copied(x.rounds()),
				x.rounds().Offers(), *x.rounds().Words())
		}
	}
	if f := x.ep.base.links.At(0).InFlight.Load(); f != 0 || x.delegated() != 0 {
		t.Errorf("%d operations are in flight, %d delegated", f, x.delegated())
	}
}

// TestDelegateAlone: a target that does not poll gets two offers, and the initiator takes the operations
// back when it has nothing else to read, or has looked often.
func TestDelegateAlone(t *testing.T) {
	x, y := delegateBench(t)
	const places = 64
	memory, local := make([]byte, places*delegatePiece), pattern(places*delegatePiece, 3)
	y.region(memory, 1, fi.RemoteWrite)
	posted := delegateOne(t, x, y, local)
	for n := range rma.DelegatePatience { // completions are there to be read, so it waits for the target
		if x.delegated() != 1 {
			t.Fatalf("taken back after %d looks", n)
		}
		x.ep.Progress()
	}
	if x.delegated() != 0 {
		t.Error("not taken back")
	}
	x.completions(posted)
	posted = delegateOne(t, x, y, local)
	x.completions(posted) // it is taken back when all others are read
	for n := range places {
		x.piece(y, local, n, false)
	}
	x.completions(places)
	if r := x.rounds(); r.Offers() != claim.MaxRounds || copied(r) != 0 || !bytes.Equal(memory, local) {
		t.Errorf("%d offers, %d done by the target", r.Offers(), copied(r))
	}
}

// TestDelegateNotToMeet: what writes the same memory as the operation before is not delegated, nor what
// is posted by an application that waits for each.
func TestDelegateNotToMeet(t *testing.T) {
	x, y := delegateBench(t)
	memory, local := make([]byte, 4*delegatePiece), pattern(4*delegatePiece, 3)
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
	if r := x.rounds(); r.Offers() > 2 { // the first of each kind has none before it
		t.Errorf("%d offers", r.Offers())
	}
}

// delegateOne posts until an operation is delegated to a target that does not poll, and
// returns how many operations wait to be read.
func delegateOne(t *testing.T, x, y *side, local []byte) int {
	t.Helper()
	for n := range 8 {
		x.piece(y, local, n, false)
		if x.delegated() != 0 {
			return n + 1
		}
	}
	t.Fatal("none is delegated")
	return 0
}

// TestDelegateLost: a delegated operation whose target is gone ends with an error, whether the target has
// taken it or not.
func TestDelegateLost(t *testing.T) {
	for _, taken := range []bool{false, true} {
		x, y := delegateBench(t)
		memory, local := make([]byte, 8*delegatePiece), pattern(8*delegatePiece, 3)
		y.region(memory, 1, fi.RemoteWrite)
		n := delegateOne(t, x, y, local)
		if r := x.rounds(); taken {
			if !takeOpen(r) {
				t.Fatal("nothing to take")
			}
		}
		y.close()
		x.completions(n - 1)
		if _, bad, ok := settle(t, x); ok || bad.Err != fi.ECONNRESET {
			t.Errorf("taken %v: %+v", taken, bad)
		}
		if f := x.ep.base.links.At(0).InFlight.Load(); f != 0 || x.delegated() != 0 {
			t.Errorf("%d operations are in flight, %d delegated", f, x.delegated())
		}
	}
}

// TestDelegateRegionEnds: an operation that is delegated on a region that ends is refused.
func TestDelegateRegionEnds(t *testing.T) {
	x, y := delegateBench(t)
	memory, local := make([]byte, 8*delegatePiece), pattern(8*delegatePiece, 3)
	m, err := y.domain.RegMR(&fi.MRAttr{IOV: iovOf(memory), Access: fi.RemoteWrite, RequestedKey: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := delegateOne(t, x, y, local)
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

// TestDelegateClosing: closing an endpoint takes back what the target has not taken, and waits for
// what it has.
func TestDelegateClosing(t *testing.T) {
	for _, taken := range []bool{false, true} {
		x, y := delegateBench(t)
		memory, local := make([]byte, 8*delegatePiece), pattern(8*delegatePiece, 3)
		y.region(memory, 1, fi.RemoteWrite)
		delegateOne(t, x, y, local)
		r := x.rounds()
		var completed atomic.Bool
		if taken {
			takeOpen(r)
			time.AfterFunc(50*time.Millisecond, func() {
				completed.Store(true)
				r.Words().Count(false)
			})
		}
		x.close()
		if completed.Load() != taken {
			t.Errorf("taken %v: closed while the target may read the buffer, or waited for nothing", taken)
		}
	}
}
