package provider

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/testseed"
	array "github.com/weft-fabric/weft/provider/internal/pieces"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// TestListShareAgainstModel has a target that polls help with random lists, whole and by picks, and compares memory
// with a model.
func TestListShareAgainstModel(t *testing.T) {
	x, y := shareBench(t)
	r := rand.New(rand.NewPCG(testseed.New(t), 0))
	m := newListModel(x, y, r)
	y.polling()
	elements, total := 0, uint64(0)
	end := time.Now().Add(20 * time.Second)
	for n := 0; n < 40 || x.rounds() == nil || copied(x.rounds()) == 0; n++ {
		pieces := m.pieces(r, [...]int{3, 100, 3000}[n%3])
		if len(pieces) < 2 {
			continue
		}
		l := x.list(pieces)
		for range 3 {
			a := ListArgs{Read: r.IntN(2) == 0, Context: uint64(n) + 1}
			picks := randomPicks(r, l.Len(), &a)
			post(t, func() error { return l.Post(&a) }, x)
			clear(a.Picks) // the caller's again
			x.completions(1)
			k, b := m.apply(pieces, picks, a.Read)
			m.compare(t, fmt.Sprintf("list %d of %d pieces, read %t, %d picks", n, len(pieces),
				a.Read, len(picks)))
			elements, total = elements+k, total+b
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) { // of a busy host
			t.Fatal("the target has never helped")
		}
	}
	wantWay(t, x, WayIPC, uint64(elements), total)
	if f := x.ep.base.links.At(0).InFlight.Load(); f != 0 {
		t.Errorf("%d operations are in flight", f)
	}
}

// sharedList is a list of which the target, that does not poll, has taken a chunk of a post with context 9.
type sharedList struct {
	list          *List
	rounds        *rma.Rounds
	memory, local []byte
}

// fakeListHelper takes chunks in the place of the target until an operation waits for one.
func fakeListHelper(t *testing.T, x, y *side) *sharedList {
	t.Helper()
	s := &sharedList{memory: make([]byte, 1<<20), local: pattern(1<<20, 3)}
	to := x.opens(y.token(y.region(s.memory, 1, fi.RemoteWrite)))
	s.list = x.list([]Piece{{
		Local: iovOf(s.local)[0].Base, LocalStride: 8192, Remote: to, RemoteStride: 8192, Len: 4096, Count: 128,
	}})
	small := x.list([]Piece{{Local: iovOf(s.local)[0].Base, Remote: to, Len: 16}})
	post(t, func() error { return small.Write(1) }, x, y)
	settle(t, x, y) // connected
	l := x.ep.base.links.At(0)
	p, ok := l.Ready()
	if !ok {
		t.Fatal("not connected")
	}
	s.rounds = p.Rounds()
	ended, took := make(chan bool), make(chan bool)
	go func() {
		defer close(took)
		for {
			select {
			case <-ended:
				return
			default:
			}
			if takeOpen(s.rounds) {
				return
			}
			runtime.Gosched()
		}
	}()
	for end := time.Now().Add(20 * time.Second); x.ep.base.rmas.Waiting() == 0; {
		post(t, func() error { return s.list.Write(9) }, x)
		if x.ep.base.rmas.Waiting() == 0 { // too fast for the helper
			x.completions(1)
			y.ep.Progress()
		}
		if time.Now().After(end) {
			t.Fatal("no chunk is taken")
		}
	}
	close(ended)
	<-took
	return s
}

// same compares the elements on both sides.
func (s *sharedList) same() bool {
	for at := 0; at < len(s.local); at += 8192 {
		if !bytes.Equal(s.memory[at:at+4096], s.local[at:at+4096]) {
			return false
		}
	}
	return true
}

// TestListShareFailed: what a target could not copy is done again, element by element, and it is offered nothing any
// more.
func TestListShareFailed(t *testing.T) {
	x, y := shareBench(t)
	s := fakeListHelper(t, x, y)
	clear(s.memory[1<<19:]) // where the chunk is, which this test takes and does not copy
	s.rounds.Words().Count(true)
	if e, bad, ok := settle(t, x, y); !ok || e.Context != 9 {
		t.Fatalf("%+v %+v", e, bad)
	}
	offers := s.rounds.Offers()
	post(t, func() error { return s.list.Write(10) }, x)
	if e, bad, ok := settle(t, x, y); !ok || e.Context != 10 || !s.same() || !s.rounds.Refused() ||
		s.rounds.Offers() != offers {
		t.Errorf("%+v %+v, same %t, %+v", e, bad, s.same(), s.rounds)
	}
}

// TestListShareLost: a list whose target goes away before it has completed its chunk ends with an error, which names
// the first element of the chunk.
func TestListShareLost(t *testing.T) {
	x, y := shareBench(t)
	fakeListHelper(t, x, y)
	y.close()
	e, bad, ok := settle(t, x)
	if ok || bad.Err != fi.ECONNRESET || bad.Context != 9 {
		t.Fatalf("%+v %+v", e, bad)
	}
	if bad.Data == 0 || bad.Data >= 128 || bad.Len != bad.Data*4096 {
		t.Errorf("element %d, %d bytes", bad.Data, bad.Len)
	}
	if f := x.ep.base.links.At(0).InFlight.Load(); f != 0 {
		t.Errorf("%d operations are in flight", f)
	}
}

// TestListShareRegionEnds closes the region while both sides copy: posts succeed or are refused, and memory that is no
// region any more stays as it is.
func TestListShareRegionEnds(t *testing.T) {
	x, y := shareBench(t)
	y.polling()
	memory, local := make([]byte, 1<<20), pattern(1<<20, 3)
	for n := range 20 {
		m := y.region(memory, 1, fi.RemoteWrite)
		to := x.opens(y.token(m))
		l := x.list([]Piece{{
			Local: iovOf(local)[0].Base, LocalStride: 4096, Remote: to, RemoteStride: 4096,
			Len: 4000, Count: 256,
		}})
		writesWhileRegionEnds(t, x, m, memory, local, n, func() error { return l.Write(1) })
	}
}

// TestListShareHostile offers lists whose pieces are not in regions, or in none that may be written, or whose array is
// not there: the target copies nothing of them, and a chunk whose pieces it cannot read has failed.
func TestListShareHostile(t *testing.T) {
	x, y := shareBench(t)
	memory := make([]byte, 1<<16)
	y.region(memory, 1, fi.RemoteWrite)
	y.region(memory, 2, fi.RemoteRead)
	small := RMAArgs{IOV: iovOf(make([]byte, 16)), Remote: []fi.RMAIOVec{{Len: 16, Key: 1}}, Dest: x.addr[y]}
	post(t, func() error { return x.ep.RMA(&small) }, x, y)
	settle(t, x, y)
	clear(memory)
	p, ok := x.ep.base.links.At(0).Ready()
	if !ok {
		t.Fatal("not connected")
	}
	local := pattern(1<<16, 3)
	at := uint64(iovOf(local)[0].Base)
	for what, bad := range map[string]wire.Piece{
		"no region":  {Local: at, Len: 64, Key: 4711},
		"no right":   {Local: at, Len: 64, Key: 2},
		"past":       {Local: at, Addr: 1<<16 - 63, Len: 64, Key: 1},
		"wraps":      {Local: at, Addr: 1, Len: ^uint64(0), Key: 1},
		"beyond all": {Local: at, Addr: 1 << 60, Len: 64, Key: 1},
	} {
		pieces := []wire.Piece{{Local: at, Len: 64, Key: 1}, bad, {Local: at, Addr: 256, Len: 64, Key: 1}, bad}
		offerPieces(t, x, y, p, &wire.Share{Local: array.Address(pieces), Want: 4, Chunk: 2,
			Key: 256, List: true})
		runtime.KeepAlive(pieces)
		if copied(p.Rounds()) != 0 {
			t.Errorf("%s: %d chunks are copied", what, copied(p.Rounds()))
		}
	}
	if !bytes.Equal(memory, make([]byte, len(memory))) {
		t.Error("memory is written")
	}
	offerPieces(t, x, y, p, &wire.Share{Local: 8, Want: 4, Chunk: 2, Key: 256, List: true})
	if n, failed := p.Rounds().Words().Done(); !failed || n != 1 {
		t.Errorf("pieces that cannot be read: %d chunks, failed %v", n, failed)
	}
	runtime.KeepAlive(local)
}

// offerPieces offers a round of two chunks and takes it back when the target has read the offer.
func offerPieces(t *testing.T, x, y *side, p *path, h *wire.Share) {
	t.Helper()
	r, ok := x.ep.base.rmas.Offer(&p.Path, 2, h)
	if !ok {
		t.Fatal("no round")
	}
	seen := func() bool { return p.Rounds().Unseen(p.Rounds().Words()) == 0 }
	for end := time.Now().Add(20 * time.Second); !seen(); y.ep.Progress() {
		if time.Now().After(end) {
			t.Fatal("the offer is not read")
		}
	}
	r.Words.Stop(r.Number, 2)
	p.Rounds().Close()
	p.Rounds().End()
}
