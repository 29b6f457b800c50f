package onesided

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// asker is the endpoint of a test as the answers to its operations have it. The peer at address n has ring n+100 and is
// reached by link n, as source n.
type asker struct {
	t       *testing.T
	r       *rand.Rand
	all     Pendings
	answers Answers
	asked   map[uint64]*asked // by context
	posted  []*asked          // in their order
	bad     int
	unknown map[uint32]bool // links that lead to a later peer
	silent  map[uint32]bool // whose peers' ends are reported
}

// asked is an operation.
type asked struct {
	f      *hot.Pending
	id     uint64
	dest   uint64
	read   bool
	result []byte
	want   []byte
	at     int
	status fi.Errno
	ended  bool
}

func (a *asker) LinkTo(dest fi.Addr, ring uintptr) (uint32, bool) {
	return uint32(dest), uint64(ring) == uint64(dest)+100 && !a.unknown[uint32(dest)]
}

func (a *asker) Leads(link uint32, _ uintptr) bool    { return !a.silent[link] }
func (a *asker) Owns(src hw.Source, link uint32) bool { return uint32(src) == link }
func (a *asker) Malformed(hw.Source, string, ...any)  { a.bad++ }

func (a *asker) Complete(context, flags uint64, completes bool, status fi.Errno, n uint64) {
	op := a.asked[context]
	if op == nil || op.ended || atomic.LoadUint32(&op.f.Busy) != 0 || n != uint64(len(op.result)) || !completes ||
		flags&fi.Read != 0 != op.read {
		a.t.Fatalf("operation %d %+v ends with flags %#x, %d bytes", context, op, flags, n)
	}
	op.ended, op.status = true, status
}

const askedOf = 3 // peers

func newAsker(t *testing.T, seed uint64) *asker {
	t.Helper()
	a := &asker{t: t, r: rand.New(rand.NewPCG(seed, 8)), asked: map[uint64]*asked{}, unknown: map[uint32]bool{},
		silent: map[uint32]bool{}}
	if err := a.all.Open(2, 8); err != nil {
		t.Fatal(err)
	}
	a.answers.Init(a, &a.all)
	t.Cleanup(a.all.Close)
	return a
}

// post posts an operation, as the data plane does, if there is a place for it.
func (a *asker) post(memory []byte) *asked {
	i := uint32(a.r.IntN(16))
	f := a.all.At(i)
	if f.Busy != 0 {
		return nil
	}
	op := &asked{f: f, dest: uint64(a.r.IntN(askedOf)), read: a.r.IntN(2) == 0, result: memory}
	context := uint64(len(a.asked) + 1)
	*f = hot.Pending{Generation: (f.Generation + 1) & (1<<31 - 1), Bytes: uint64(len(memory)), Context: context,
		Result: address(memory), Dest: op.dest, Ring: uintptr(op.dest + 100), Completes: 1, Flags: fi.RMA | fi.Write}
	if op.read {
		f.Flags = fi.RMA | fi.Read
		op.want = make([]byte, len(memory))
		for i := range op.want {
			op.want[i] = byte(a.r.Uint32() | 1)
		}
	}
	f.Busy = 1
	op.id = hot.PendingID | uint64(f.Generation)<<32 | uint64(i)
	a.asked[context] = op
	a.posted = append(a.posted, op)
	return op
}

// TestAnswers ends operations of chance by the answers to them, in pieces, and by the loss of peers. Answers that no
// operation waits for, of other sources, of former operations in a place, or of other lengths, change nothing.
func TestAnswers(t *testing.T) {
	arena, err := mem.Map(1<<20, mem.NoReserve)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Unmap(arena) }()
	for seed := range seeds(100) {
		a, used := newAsker(t, seed), 0
		for range 400 {
			if used+100 < len(arena) {
				n := 1 + a.r.IntN(60)
				a.post(arena[used:][:n:n])
				used += n + 8
			}
			a.posted = slices.DeleteFunc(a.posted, func(op *asked) bool { return op.ended })
			if len(a.posted) != 0 {
				a.answer(a.posted[a.r.IntN(len(a.posted))])
			}
			a.check()
		}
		for link := range uint32(askedOf) {
			a.lose(link)
		}
		for context, op := range a.asked {
			if !op.ended {
				t.Fatalf("seed %d: operation %d has not ended", seed, context)
			}
		}
		clear(arena)
	}
}

// answer sends an answer to an operation, or a wrong one.
func (a *asker) answer(op *asked) {
	bad, src := a.bad, hw.Source(op.dest)
	wrong := func(what string, send func()) {
		before, at := a.bad, op.at
		if send(); a.bad != before+1 || op.ended || op.at != at {
			a.t.Fatalf("%s is taken in", what)
		}
	}
	left := len(op.result) - op.at
	switch a.r.IntN(12) {
	case 0:
		wrong("an answer of another source", func() { a.answers.Ended(src+1, op.id, &wire.Done{Units: 1}) })
		wrong("a result of another source", func() { a.answers.Fetched(src+1, op.id, uint64(op.at), nil) })
	case 1:
		wrong("an answer to a later operation", func() { a.answers.Ended(src, op.id+1<<32, &wire.Done{Units: 1}) })
		wrong("an answer to no place", func() { a.answers.Ended(src, op.id|0xffff, &wire.Done{Units: 1}) })
	case 2:
		wrong("a long result", func() { a.answers.Fetched(src, op.id, uint64(op.at), make([]byte, left+1)) })
		wrong("a result elsewhere", func() { a.answers.Fetched(src, op.id, uint64(op.at)+1, nil) })
	case 3:
		d := wire.Done{Units: 2}
		if op.read {
			d.Units = 1
		}
		wrong("an outcome that does not fit", func() { a.answers.Ended(src, op.id, &d) })
	case 4:
		if !op.read {
			wrong("a result of a write", func() { a.answers.Fetched(src, op.id, 0, []byte{1}) })
		}
	case 5:
		a.answers.Ended(src, op.id, &wire.Done{Status: fi.EACCES})
		if !op.ended || op.status != fi.EACCES {
			a.t.Fatalf("a refusal: ended %v, %v", op.ended, op.status)
		}
	case 6:
		a.all.SeekLost()
		if a.answers.Seek(); op.ended || a.all.Seeks() {
			a.t.Fatal("an operation on a peer that is there ends")
		}
	default:
		if !op.read {
			if a.answers.Ended(src, op.id, &wire.Done{Units: 1}); !op.ended || op.status != fi.Success {
				a.t.Fatalf("an answer: ended %v, %v", op.ended, op.status)
			}
			break
		}
		n := 1 + a.r.IntN(left)
		piece := op.want[op.at:][:n]
		op.at += n
		if a.answers.Fetched(src, op.id, uint64(op.at-n), piece); op.ended != (n == left) || op.status != fi.Success {
			a.t.Fatalf("%d of %d bytes: ended %v, %v", n, left, op.ended, op.status)
		}
	}
	if a.bad == bad && a.all.To(fi.Addr(op.dest)) != a.waits(op.dest) {
		a.t.Fatalf("operations on %d wait: %v", op.dest, a.all.To(fi.Addr(op.dest)))
	}
}

// waits reports whether an operation on a peer has not ended.
func (a *asker) waits(dest uint64) bool {
	for _, op := range a.asked {
		if !op.ended && op.dest == dest {
			return true
		}
	}
	return false
}

// check compares results with what was sent.
func (a *asker) check() {
	a.t.Helper()
	for context, op := range a.asked {
		want := append(bytes.Clone(op.want[:op.at]), make([]byte, len(op.result)-op.at)...)
		if !bytes.Equal(op.result, want) {
			a.t.Fatalf("operation %d: result %x, want %x", context, op.result, want)
		}
	}
}

// lose has a peer go: as a link that is lost, as one whose end has been reported, or as one of which another peer has
// the link. Operations on others stay.
func (a *asker) lose(link uint32) {
	switch a.r.IntN(3) {
	case 0:
		a.answers.PeerLost(link, fi.ESHUTDOWN)
	case 1:
		a.silent[link] = true
		a.all.SeekLost()
		a.answers.Seek()
	default:
		a.unknown[link] = true
		a.all.SeekLost()
		a.answers.Seek()
	}
	for context, op := range a.asked {
		if op.dest == uint64(link) && !op.ended || op.dest > uint64(link) && op.status == fi.ECONNRESET {
			a.t.Fatalf("operation %d on %d, as %d is lost: ended %v, %v", context, op.dest, link, op.ended, op.status)
		}
	}
}
