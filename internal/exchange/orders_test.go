package exchange

import (
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/interleave"
)

// The engine in every order of events, in groups of two and three: a member is a thread that takes one message at a
// time, and what it sends is there at once, or where wires are threads too, any time later. No timer runs, so an
// operation ends by what arrives alone. A state without a step is a deadlock.

// ordersModel is a group.
type ordersModel struct {
	slices [][]int64 // by sender and receiver
	policy Policy
	wires  bool
	large  bool                 // has many states
	change func(a *Action) bool // of what members send: false drops it; nil: nothing is wrong

	sent   [][][]Action // by sender and receiver, of this run
	hashes [][][]uint32 // of the messages up to each
}

// Words: for each pair what was sent and what has arrived, as a count and a hash of all of it.
func (o *ordersModel) sentWord(from, to int) interleave.Word {
	return interleave.Word(from*len(o.slices) + to)
}

func (o *ordersModel) hereWord(from, to int) interleave.Word {
	if !o.wires {
		return o.sentWord(from, to)
	}
	return interleave.Word(len(o.slices)*len(o.slices) + from*len(o.slices) + to)
}

func (o *ordersModel) program() *interleave.Program {
	n := len(o.slices)
	p := &interleave.Program{MaxStates: 300_000}
	for k := range 2 * n * n {
		p.Names = append(p.Names, fmt.Sprintf("word %d", k))
	}
	add := func(name string, body func(*interleave.T)) {
		p.Threads = append(p.Threads, interleave.Thread{Name: name, Body: body})
	}
	o.sent, o.hashes = make([][][]Action, n), make([][][]uint32, n)
	for i := range n {
		add(fmt.Sprintf("member %d", i), func(t *interleave.T) { o.member(t, i) })
		for j := range n {
			if o.wires && i != j {
				add(fmt.Sprintf("wire %d-%d", i, j), func(t *interleave.T) { o.wire(t, i, j) })
			}
		}
	}
	return p
}

// wire brings messages from one member to another, until both have ended.
func (o *ordersModel) wire(t *interleave.T, from, to int) {
	in, out := o.sentWord(from, to), o.hereWord(from, to)
	threads := len(o.slices) // of a member and its wires
	ends := []int{from * threads, to * threads}
	for done := uint64(0); ; {
		t.Await(func(m interleave.Memory) bool {
			return m.Load(in)>>32 > done || m.Ended(ends[0]) && m.Ended(ends[1])
		})
		if t.Load(in)>>32 <= done {
			return
		}
		done++
		t.StoreSC(out, done<<32|uint64(o.hashes[from][to][done-1]))
		t.At(done)
	}
}

// send adds a message, and returns how many there are with the hash of all.
func (o *ordersModel) send(from, to int, a Action) uint64 {
	hashes := o.hashes[from][to]
	h, last := fnv.New32a(), uint32(0)
	if len(hashes) != 0 {
		last = hashes[len(hashes)-1]
	}
	fmt.Fprint(h, last, a.Kind, a.Head, a.Word)
	o.sent[from][to], o.hashes[from][to] = append(o.sent[from][to], a), append(hashes, h.Sum32())
	return uint64(len(hashes)+1)<<32 | uint64(h.Sum32())
}

// member runs one operation.
func (o *ordersModel) member(t *interleave.T, me int) {
	n := len(o.slices)
	cfg := DefaultConfig(n - 1)
	cfg.Chunk, cfg.Short, cfg.Policy = 4, 1, o.policy
	e, err := New(cfg)
	t.Check(err == nil, "%v", err)
	rank := func(peer int) int { return (me + 1 + peer) % n }
	out, in := make([]int64, n-1), make([]int64, n-1)
	for p := range out {
		out[p], in[p] = o.slices[me][rank(p)], o.slices[rank(p)][me]
	}
	o.sent[me], o.hashes[me] = make([][]Action, n), make([][]uint32, n)
	now, taken := congestion.Time(1000), make([]uint64, n-1)
	e.Start(now, out, in)
	for first := 0; ; {
		for a, ok := e.Next(now); ok; a, ok = e.Next(now) {
			if o.change != nil && !o.change(&a) {
				continue
			}
			to := rank(a.Peer)
			t.StoreSC(o.sentWord(me, to), o.send(me, to, a))
		}
		if e.Done() {
			t.Check(!e.Failed(), "member %d fails", me)
			return
		}
		t.Await(func(m interleave.Memory) bool {
			for p := range taken {
				if m.Load(o.hereWord(rank(p), me))>>32 > taken[p] {
					return true
				}
			}
			return false
		})
		for range taken {
			p := first
			first = (first + 1) % len(taken)
			if t.Load(o.hereWord(rank(p), me))>>32 > taken[p] {
				a := o.sent[rank(p)][me][taken[p]]
				taken[p]++
				now = now.Add(time.Millisecond)
				t.Check(o.take(e, now, p, &a), "member %d refuses %+v", me, a)
				break
			}
		}
	}
}

// take brings a message to a member.
func (o *ordersModel) take(e *Engine, now congestion.Time, from int, a *Action) bool {
	if a.Kind == SendWord {
		return e.OnWord(now, from, a.Word)
	}
	return e.Arrived(now, from, &a.Head, a.Head.Offset, a.Head.Length, true)
}

// ordersGroups are the groups that are searched.
var ordersGroups = map[string]ordersModel{
	"two":                {slices: [][]int64{{0, 9}, {5, 0}}},
	"two, one way":       {slices: [][]int64{{0, 14}, {0, 0}}},
	"two, wires":         {slices: [][]int64{{0, 9}, {0, 0}}, wires: true},
	"three, in a circle": {slices: [][]int64{{0, 2, 0}, {0, 0, 2}, {2, 0, 0}}, large: true},
	"three, one has all": {slices: [][]int64{{0, 5, 5}, {0, 0, 0}, {0, 0, 0}}},
}

// TestOrders: no order of events has a small group wait for ever, under any policy.
func TestOrders(t *testing.T) {
	for name, group := range ordersGroups {
		for policy := range policies {
			if group.large && policy != Adaptive {
				continue
			}
			o := group
			o.policy = policy
			result, err := interleave.Explore(o.program())
			if err != nil {
				t.Errorf("%s, policy %d: %v", name, policy, err)
			}
			t.Logf("%s, policy %d: %+v", name, policy, result)
		}
	}
}

// TestOrdersFindMutants: the search finds members that wait for a word that was forgotten.
func TestOrdersFindMutants(t *testing.T) {
	for name, group := range ordersGroups {
		o := group
		o.change = func(a *Action) bool {
			return a.Kind != SendWord || a.Word.Got < 2
		}
		if _, err := interleave.Explore(o.program()); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}
