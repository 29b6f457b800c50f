package provider

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/testseed"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/rma"
)

// shareBench has operations of any length shared.
func shareBench(t *testing.T) (x, y *side) {
	t.Helper()
	b := newBench(t, func(c *config.Config) { c.RMAAssistSize = 4096 }, rmaHints())
	return b.pair(t)
}

// polling has a side make progress until the test ends or stop is called.
func (s *side) polling() (stop func()) {
	var ended atomic.Bool
	done := make(chan bool)
	go func() {
		defer close(done)
		for !ended.Load() {
			s.ep.Progress()
			runtime.Gosched()
		}
	}()
	stop = func() {
		ended.Store(true)
		<-done
	}
	s.t.Cleanup(stop)
	return stop
}

// rounds returns what x knows of its rounds with its only target.
func (s *side) rounds() *rma.Rounds {
	for l := range s.ep.base.links.All() {
		if p := l.Path(); p != nil {
			return p.Rounds()
		}
	}
	return nil
}

// copied is how many chunks the target has copied.
func copied(r *rma.Rounds) uint32 {
	n, _ := r.Words().Done()
	return n
}

// takeOpen takes the last chunk of a round that is open in the place of the target, and reports false if there is none.
func takeOpen(r *rma.Rounds) bool {
	round := atomic.LoadUint64(&r.Words()[0]) >> claim.RoundShift
	_, ok := r.Words().TakeBack(round, claim.MaxChunks)
	return ok && round != 0
}

// completions reads n completions of s without errors.
func (s *side) completions(n int) {
	s.t.Helper()
	var got [8]cq.Entry
	for end := time.Now().Add(20 * time.Second); n > 0; {
		s.ep.Progress()
		m, err := s.cq.Read(got[:min(n, len(got))])
		if fi.ErrnoOf(err) == fi.EAVAIL {
			e, _ := s.cq.ReadErr()
			s.t.Fatalf("completion %+v", e)
		}
		n -= max(m, 0)
		if time.Now().After(end) {
			s.t.Fatalf("%d completions are missing", n)
		}
	}
}

// TestShareAgainstModel has a target that polls help with random operations, some
// at a time, and compares memory with a model.
func TestShareAgainstModel(t *testing.T) {
	x, y := shareBench(t)
	const size, places = 1 << 20, 4
	r := rand.New(rand.NewPCG(testseed.New(t), 0))
	remote, local := make([]byte, size*places), make([]byte, size*places)
	model := make([]byte, len(remote))
	y.region(remote, 7, fi.RemoteRead|fi.RemoteWrite)
	y.polling()
	for i := range local {
		local[i], remote[i] = byte(r.Uint32()), byte(i>>9)
	}
	copy(model, remote)
	want := bytes.Clone(local)
	for n := range 150 {
		count := 1 + r.IntN(places)
		for i := range count {
			length := 4096 + r.IntN([...]int{1, 65536, 65536, size - 4096}[r.IntN(4)])
			at, from := i*size+r.IntN(size-length+1), i*size+r.IntN(size-length+1)
			a := RMAArgs{
				IOV:    iovOf(local[from : from+length]),
				Remote: []fi.RMAIOVec{{Addr: uint64(at), Len: uint64(length), Key: 7}},
				Dest:   x.addr[y], Context: uint64(n), Read: r.IntN(2) == 0,
			}
			if r.IntN(4) == 0 {
				a.Flags |= fi.DeliveryComplete
			}
			if a.Read {
				copy(want[from:from+length], model[at:])
			} else {
				copy(model[at:], want[from:from+length])
			}
			post(t, func() error { return x.ep.RMA(&a) }, x)
		}
		x.completions(count)
		if !bytes.Equal(local, want) || !bytes.Equal(remote, model) {
			t.Fatalf("operation %d: memory differs", n)
		}
	}
	for end := time.Now().Add(20 * time.Second); copied(x.rounds()) == 0; { // on a busy host
		a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: uint64(len(local)), Key: 7}}, Dest: x.addr[y]}
		post(t, func() error { return x.ep.RMA(&a) }, x)
		x.completions(1)
		if time.Now().After(end) {
			t.Fatal("the target has never helped")
		}
	}
	if f := x.ep.base.links.At(0).InFlight.Load(); f != 0 {
		t.Errorf("%d operations are in flight", f)
	}
}

// TestShareData: CQ data of a shared write comes after all of its bytes.
func TestShareData(t *testing.T) {
	x, y := shareBench(t)
	memory := make([]byte, 1<<20)
	y.region(memory, 1, fi.RemoteWrite)
	var got [1]cq.Entry
	for i := range 50 {
		local := bytes.Repeat([]byte{byte(i + 1)}, len(memory))
		a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: uint64(len(local)), Key: 1}}, Dest: x.addr[y],
			HasData: true, Data: uint64(i)}
		seen := make(chan bool)
		go func() {
			defer close(seen)
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); y.ep.Progress() {
				if n, _ := y.cq.Read(got[:]); n == 1 {
					if got[0].Data != uint64(i) || !bytes.Equal(memory, local) {
						t.Errorf("write %d: %+v came before the payload", i, got[0])
					}
					return
				}
			}
			t.Errorf("write %d: no CQ data", i)
		}()
		post(t, func() error { return x.ep.RMA(&a) }, x)
		x.completions(1)
		<-seen
	}
}

// TestShareAlone: a target that does not poll gets two offers, and nothing waits
// for it. When it polls again it helps again.
func TestShareAlone(t *testing.T) {
	x, y := shareBench(t)
	memory, local := make([]byte, 1<<20), pattern(1<<20, 3)
	y.region(memory, 1, fi.RemoteRead|fi.RemoteWrite)
	for n := range 20 {
		a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: uint64(len(local)), Key: 1}}, Dest: x.addr[y],
			Read: n%2 == 1}
		post(t, func() error { return x.ep.RMA(&a) }, x)
		x.completions(1)
	}
	r := x.rounds()
	if r.Offers() != claim.MaxRounds || copied(r) != 0 || !bytes.Equal(memory, local) {
		t.Errorf("%d offers, %d chunks copied", r.Offers(), copied(r))
	}
	y.ep.Progress()
	if n := r.Unseen(r.Words()); n != 0 {
		t.Errorf("the target has not seen %d offers", n)
	}
}

// fakeHelper takes a chunk in the place of the target, which does not poll.
func fakeHelper(t *testing.T, x, y *side, read bool) (r *rma.Rounds, memory, local []byte) {
	t.Helper()
	memory, local = make([]byte, 1<<20), pattern(1<<20, 3)
	if read {
		memory, local = local, memory
	}
	y.region(memory, 1, fi.RemoteRead|fi.RemoteWrite)
	small := RMAArgs{IOV: iovOf(local[:16]), Remote: []fi.RMAIOVec{{Len: 16, Key: 1}}, Dest: x.addr[y], Read: read}
	post(t, func() error { return x.ep.RMA(&small) }, x, y)
	settle(t, x, y) // connected
	r = x.rounds()
	took := make(chan bool)
	go func() {
		defer close(took)
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); runtime.Gosched() {
			if takeOpen(r) {
				return
			}
		}
		t.Error("no round")
	}()
	for n := 0; x.ep.base.rmas.Waiting() == 0; n++ {
		a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: uint64(len(local)), Key: 1}}, Dest: x.addr[y],
			Context: 9, Read: read}
		post(t, func() error { return x.ep.RMA(&a) }, x)
		if x.ep.base.rmas.Waiting() == 0 { // too fast for the helper
			x.completions(1)
			y.ep.Progress()
		}
	}
	<-took
	for range 100 {
		x.ep.Progress()
	}
	if n, _ := x.cq.Read(make([]cq.Entry, 1)); n > 0 {
		t.Fatal("completed before the target has completed")
	}
	return r, memory, local
}

// TestShareFailed: what a target could not copy is done again as messages, and it
// is offered nothing any more.
func TestShareFailed(t *testing.T) {
	for _, read := range []bool{false, true} {
		x, y := shareBench(t)
		r, memory, local := fakeHelper(t, x, y, read)
		r.Words().Count(true)
		if e, bad, ok := settle(t, x, y); !ok || e.Context != 9 {
			t.Fatalf("%+v %+v", e, bad)
		}
		offers := r.Offers()
		a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: uint64(len(local)), Key: 1}}, Dest: x.addr[y],
			Read: read}
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
		settle(t, x, y)
		if !bytes.Equal(memory, local) || !r.Refused() || r.Offers() != offers {
			t.Errorf("read %v: data equal %v, %+v", read, bytes.Equal(memory, local), r)
		}
	}
}

// TestShareLost: an operation whose target goes away before it has completed its
// chunk ends with an error.
func TestShareLost(t *testing.T) {
	x, y := shareBench(t)
	fakeHelper(t, x, y, false)
	y.close()
	if e, bad, ok := settle(t, x); ok || bad.Err != fi.ECONNRESET || bad.Context != 9 {
		t.Fatalf("%+v %+v", e, bad)
	}
	if f := x.ep.base.links.At(0).InFlight.Load(); f != 0 {
		t.Errorf("%d operations are in flight", f)
	}
}

// TestShareClosing: closing an endpoint waits for the target to complete its chunk.
func TestShareClosing(t *testing.T) {
	x, y := shareBench(t)
	r, _, _ := fakeHelper(t, x, y, true)
	var completed atomic.Bool
	go func() {
		time.Sleep(50 * time.Millisecond)
		completed.Store(true)
		r.Words().Count(false)
	}()
	x.close()
	if !completed.Load() {
		t.Error("closed while the target may write into its buffer")
	}
}

// writesWhileRegionEnds closes the region of memory, round n a while later than the one before, between writes of local
// into it: each succeeds or is refused, and memory that is no region any more stays as it is.
func writesWhileRegionEnds(t *testing.T, x *side, m *MR, memory, local []byte, n int, write func() error) {
	t.Helper()
	closed := make(chan []byte)
	go func() {
		time.Sleep(time.Duration(n%10) * 50 * time.Microsecond)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		closed <- bytes.Clone(memory)
	}()
	for range 4 {
		for i := range local {
			local[i] = byte(n + i)
		}
		post(t, write, x)
		if _, bad, ok := settle(t, x); !ok && bad.Err != fi.ENOKEY {
			t.Fatalf("%+v", bad)
		}
	}
	if !bytes.Equal(<-closed, memory) {
		t.Fatal("memory was written after the end of its registration")
	}
}

// TestShareRegionEnds closes regions while both sides copy: operations succeed or
// are refused, and memory that is no region any more stays as it is.
func TestShareRegionEnds(t *testing.T) {
	x, y := shareBench(t)
	y.polling()
	memory, local := make([]byte, 1<<20), pattern(1<<20, 3)
	for n := range 30 {
		m, err := y.domain.RegMR(&fi.MRAttr{IOV: iovOf(memory), Access: fi.RemoteRead | fi.RemoteWrite,
			RequestedKey: 1}, 0)
		if err != nil {
			t.Fatal(err)
		}
		writesWhileRegionEnds(t, x, m, memory, local, n, func() error {
			a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: uint64(len(local)), Key: 1}}, Dest: x.addr[y]}
			return x.ep.RMA(&a)
		})
	}
}

// TestShareHostileWords: whatever the target writes into the words, operations of
// the initiator stay within their memory.
func TestShareHostileWords(t *testing.T) {
	x, y := shareBench(t)
	memory, local := make([]byte, 1<<20), pattern(1<<20, 3)
	y.region(memory, 1, fi.RemoteRead|fi.RemoteWrite)
	run := func() {
		a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: uint64(len(local)), Key: 1}}, Dest: x.addr[y]}
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
	}
	run()
	x.completions(1)
	r := x.rounds()
	var fails claim.Words
	fails.Count(true)
	failed := fails[1] &^ 1
	var ended atomic.Bool
	done := make(chan bool)
	go func() {
		defer close(done)
		g := rand.New(rand.NewPCG(1, 2))
		for !ended.Load() {
			atomic.StoreUint64(&r.Words()[g.IntN(2)], g.Uint64()>>g.IntN(64)&^failed)
			runtime.Gosched()
		}
	}()
	for range 200 {
		run()
		for range 3 {
			x.ep.Progress()
			y.ep.Progress()
		}
		_, _ = x.cq.Read(make([]cq.Entry, 8))
		_, _ = x.cq.ReadErr()
	}
	ended.Store(true)
	<-done
	for _, needs := range x.ep.base.rmas.Needs() { // else closing waits for what never comes
		atomic.StoreUint64(&r.Words()[1], uint64(needs))
	}
}
