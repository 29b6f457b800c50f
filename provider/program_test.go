package provider

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/testseed"
	"github.com/weft-fabric/weft/provider/atomics"
)

// seedCount is the number of seeds of a test of random programs: n, a tenth of
// that with -short, or what WEFT_TEST_SEEDS says.
func seedCount(t testing.TB, n uint64) uint64 {
	t.Helper()
	if testing.Short() {
		n = max(n/10, 1)
	}
	return testseed.Count(t, n)
}

// The memory of a side in random programs: slots, of which each has one
// operation at a time, so that the outcome does not depend on their order.
const (
	slotBytes = 80000 // more than is written in messages
	slotCount = 24
)

// program is a random program of messages, reads, writes and atomic operations
// between two sides in both directions, many at a time, and its model: what each
// side's memory holds when nothing is under way.
type program struct {
	t      *testing.T
	r      *rand.Rand
	sides  [2]*side
	memory [2][]byte
	model  [2][]byte
	busy   [2][slotCount]bool
	under  map[uint64]*step
	last   uint64
	seed   uint64
}

// step is an operation under way. A message has two completions.
type step struct {
	side  int // the initiator's
	slot  int // at the other side, -1: a message
	left  int
	flags uint64 // of the initiator's completion
	frees bool   // when it completes the slot may be used again
	got   []byte // where what it fetches or receives comes to
	want  []byte
}

// keyAt is the key of a side's memory: both are in one domain.
func keyAt(side int) uint64 { return 7 + uint64(side) }

// region gives both sides their memory.
func (p *program) region() {
	for i, s := range p.sides {
		words := make([]uint64, slotBytes*slotCount/8) // aligned for atomics
		p.memory[i] = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
		p.model[i] = make([]byte, len(p.memory[i]))
		s.region(p.memory[i], keyAt(i), fi.RemoteRead|fi.RemoteWrite)
	}
}

// begin posts a random operation.
func (p *program) begin() {
	s := &step{side: p.r.IntN(2), slot: p.r.IntN(slotCount), left: 1, frees: true}
	from, to := p.sides[s.side], p.sides[1-s.side]
	p.last += 2
	id := p.last
	if p.r.IntN(3) == 0 {
		p.message(id, s, from, to)
		return
	}
	if p.busy[1-s.side][s.slot] {
		return
	}
	p.busy[1-s.side][s.slot] = true
	p.under[id] = s
	if p.r.IntN(3) == 0 {
		p.atomic(id, s, from, to)
		return
	}
	n := p.r.IntN([...]int{8, 100, 9000, slotBytes}[p.r.IntN(4)]) + 1
	at := s.slot*slotBytes + p.r.IntN(slotBytes-n+1)
	model := p.model[1-s.side][at : at+n]
	data := make([]byte, n)
	a := RMAArgs{Dest: from.addr[to], Context: id, Read: p.r.IntN(2) == 0, Remote: remotePieces(p.r, uint64(at),
		uint64(n), keyAt(1-s.side))}
	a.IOV = randomParts(p.r, data)
	if a.Read {
		s.flags, s.got, s.want = fi.RMA|fi.Read, data, bytes.Clone(model)
	} else {
		p.fill(data)
		copy(model, data)
		s.flags = fi.RMA | fi.Write
		if s.frees = p.r.IntN(2) == 0; s.frees {
			a.Flags = fi.DeliveryComplete // else it may be in place later
		} else if n < 100 && p.r.IntN(2) == 0 {
			a.Flags = fi.Inject
		}
	}
	p.post(func() error { return from.ep.RMA(&a) })
	if a.Flags&fi.Inject != 0 {
		p.fill(data) // the caller's again
	}
}

// message sends one, with its receive posted before or after.
func (p *program) message(id uint64, s *step, from, to *side) {
	n := p.r.IntN([...]int{1, 100, 9000, 100000}[p.r.IntN(4)])
	s.slot, s.left, s.flags = -1, 2, fi.Tagged|fi.Send
	s.want, s.got = make([]byte, n), make([]byte, n)
	p.fill(s.want)
	p.under[id] = s
	first := p.r.IntN(2) == 0
	receive := func() {
		a := RecvArgs{IOV: randomParts(p.r, s.got), Tag: id, Tagged: true, Src: fi.AddrUnspec, Context: id + 1}
		p.post(func() error { return to.ep.PostRecv(&a) })
	}
	if first {
		receive()
	}
	a := SendArgs{IOV: randomParts(p.r, s.want), Tag: id, Tagged: true, Dest: from.addr[to], Context: id}
	p.post(func() error { return from.ep.Send(&a) })
	if !first {
		receive()
	}
}

// atomic adds, swaps or compares and swaps some words.
func (p *program) atomic(id uint64, s *step, from, to *side) {
	n := 8 * (1 + p.r.IntN(32))
	at := s.slot*slotBytes + 8*p.r.IntN((slotBytes-n)/8)
	model := p.model[1-s.side][at : at+n]
	operand, compare, want := make([]byte, n), bytes.Clone(model), make([]byte, n)
	p.fill(operand)
	if p.r.IntN(2) == 0 {
		p.fill(compare)
	}
	kind := atomics.Kind(p.r.IntN(3))
	op := [...]fi.Op{fi.OpSum, fi.OpBXor, fi.OpCSwap}[kind]
	job := atomics.Job{Op: op, Datatype: fi.Uint64, Count: n / 8, Target: unsafe.Pointer(&model[0]),
		Operand: unsafe.Pointer(&operand[0]), Result: unsafe.Pointer(&want[0])}
	a := AtomicArgs{Kind: kind, Op: op, Datatype: fi.Uint64, Operand: iovOf(operand), Dest: from.addr[to], Context: id,
		Remote: []fi.RMAIOVec{{Addr: uint64(at), Len: uint64(n), Key: keyAt(1 - s.side)}}}
	switch kind {
	case atomics.Base:
		s.flags, a.Flags = fi.Atomic|fi.Write, fi.DeliveryComplete
	case atomics.Compare:
		a.Compare, job.Compare = iovOf(compare), unsafe.Pointer(&compare[0])
		fallthrough
	default:
		s.flags, s.got, s.want = fi.Atomic|fi.Read, make([]byte, n), want
		a.Result = randomParts(p.r, s.got)
	}
	if !atomics.Apply(&job) {
		p.t.Fatal("the model refuses")
	}
	p.post(func() error { return from.ep.Atomic(&a) })
}

func (p *program) fill(b []byte) {
	for i := range b {
		b[i] = byte(p.r.Uint32())
	}
}

// post retries; completions are taken meanwhile.
func (p *program) post(f func() error) {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		err := f()
		if err == nil {
			return
		}
		if !errors.Is(err, fi.EAGAIN) || time.Now().After(end) {
			p.t.Fatalf("seed %d: post: %v", p.seed, err)
		}
		p.reap()
	}
}

// reap makes progress and takes completions.
func (p *program) reap() {
	p.t.Helper()
	var got [8]cq.Entry
	for i, s := range p.sides {
		s.ep.Progress()
		n, err := s.cq.Read(got[:])
		if err != nil && !errors.Is(err, fi.EAGAIN) {
			e, _ := s.cq.ReadErr()
			p.t.Fatalf("seed %d: %v: %+v", p.seed, err, e)
		}
		for _, e := range got[:max(n, 0)] {
			p.completed(i, &e)
		}
	}
}

func (p *program) completed(side int, e *cq.Entry) {
	p.t.Helper()
	id := e.Context &^ 1
	s, flags := p.under[id], fi.Tagged|fi.Recv
	if s != nil && e.Context&1 == 0 {
		flags = s.flags
	}
	if s == nil || e.Flags != flags || (side == s.side) != (e.Context&1 == 0) {
		p.t.Fatalf("seed %d: completion %+v at side %d of %+v", p.seed, e, side, s)
	}
	if s.left--; s.left != 0 {
		return
	}
	if !bytes.Equal(s.got, s.want) && s.got != nil {
		p.t.Fatalf("seed %d: operation %d of %d bytes with flags %#x brings wrong bytes", p.seed, id, len(s.want),
			s.flags)
	}
	if s.slot >= 0 && s.frees {
		p.busy[1-s.side][s.slot] = false
	}
	delete(p.under, id)
}

// run is one program; then memory is as in the model.
func (p *program) run(steps int) {
	p.t.Helper()
	for range steps {
		p.begin()
		if p.r.IntN(3) == 0 {
			p.reap()
		}
	}
	same := func() bool {
		return len(p.under) == 0 && bytes.Equal(p.memory[0], p.model[0]) && bytes.Equal(p.memory[1], p.model[1])
	}
	for end := time.Now().Add(20 * time.Second); !same(); p.reap() {
		if time.Now().After(end) {
			p.t.Fatalf("seed %d: %d operations are under way, or memory is not as in the model", p.seed, len(p.under))
		}
	}
	p.busy = [2][slotCount]bool{}
}

// TestPrograms runs random programs over endpoints that may read each other's
// memory and that may not, and over connections. WEFT_TEST_SEEDS says how many.
func TestPrograms(t *testing.T) {
	run := func(t *testing.T, x, y *side) {
		p := &program{t: t, sides: [2]*side{x, y}, under: map[uint64]*step{}}
		p.region()
		for p.seed = range seedCount(t, 100) {
			p.r = rand.New(rand.NewPCG(p.seed, 9))
			p.run(60)
		}
	}
	for name, change := range map[string]func(*config.Config){
		"memory":   func(c *config.Config) { c.UseCMA = config.Auto },
		"messages": func(c *config.Config) { c.UseCMA = config.No },
		"closed":   func(c *config.Config) { c.UnexpectedBytes = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, change, rmaHints())
			x, y := b.pair(t)
			run(t, x, y)
		})
	}
	t.Run("connection", func(t *testing.T) {
		c := newConnBench(t, &fi.Info{Caps: fi.Msg | fi.Tagged | fi.RMA | fi.Atomic})
		a, b := c.join(t)
		run(t, a, b)
	})
}
