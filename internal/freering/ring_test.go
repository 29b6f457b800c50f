package freering

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/interleave"
)

// TestRing: numbers come in the order in which they were put, behind those that were given back, and none comes that is
// not there.
func TestRing(t *testing.T) {
	for _, count := range []uint32{1, 2, 3, 4, 7} {
		var r Ring
		r.Open(10, count)
		r.Fill()
		taken := []uint32{}
		take := func() {
			n, ok := r.Take()
			if !ok {
				t.Fatalf("%d numbers: none after %d", count, taken)
			}
			taken = append(taken, n)
		}
		for range count {
			take()
		}
		if n, ok := r.Take(); ok || r.Len() != 0 {
			t.Errorf("%d numbers: one more, %d, %d left", count, n, r.Len())
		}
		for round := range 3 * count { // positions go round
			r.Put(taken[0])
			taken = taken[1:]
			if take(); taken[len(taken)-1] != 10+round%count {
				t.Fatalf("%d numbers, round %d: %d", count, round, taken)
			}
		}
		last := taken[len(taken)-1]
		r.Undo(last)
		if n, ok := r.Take(); !ok || n != last || r.Len() != 0 {
			t.Errorf("%d numbers: %d comes back as %d, %d left", count, last, n, r.Len())
		}
	}
}

// TestFresh: a number that was put is taken before one that never was, so that no more circulate than are used at a
// time, and all are there in the end.
func TestFresh(t *testing.T) {
	const count = 4
	var r Ring
	r.Open(10, count)
	for round := range uint32(3 * count) {
		n, ok := r.Take()
		if !ok || n != 10 || r.Len() != count-1 {
			t.Fatalf("round %d: %d, %v, %d left", round, n, ok, r.Len())
		}
		if round%2 == 0 {
			r.Undo(n)
		} else {
			r.Put(n)
		}
		if r.Len() != count {
			t.Fatalf("round %d: %d are there", round, r.Len())
		}
	}
	for k := range uint32(count) {
		if n, ok := r.Take(); !ok || n != 10+k {
			t.Errorf("number %d is %d, %v", k, n, ok)
		}
	}
	if n, ok := r.Take(); ok || r.Len() != 0 {
		t.Errorf("one more, %d, %d left", n, r.Len())
	}
}

// ringRules are mutants.
type ringRules struct {
	tailFirst bool // Put says that there is a number before it is there
	noTail    bool // Take does not ask how far Put is
	keptHead  bool // Undo leaves head
}

// The words of ringProgram: a ring of four slots, what was handed over, and whether a number is used.
const (
	ringHead = interleave.Word(0)
	ringTail = interleave.Word(1)
	ringSlot = interleave.Word(2) // and the next three
	ringHand = interleave.Word(6) // a number on its way from the taker to the giver; 0: none
	ringUser = interleave.Word(7) // of number 1, and so on: 1 while something has it
	// the first number that was not taken yet
	ringFresh = ringUser + ringSlots
	ringMask  = 3

	ringSlots = ringMask + 1
)

// slotOf is the slot of a position.
func slotOf(position uint64) interleave.Word { return ringSlot + interleave.Word(position&ringMask) }

func ringTake(t *interleave.T, numbers int, rules ringRules) (n uint64) {
	h := t.Load(ringHead)
	if fresh := t.Load(ringFresh); !rules.noTail && h == t.Load(ringTail) {
		if fresh > uint64(numbers) {
			return 0
		}
		n = fresh
		t.Store(ringFresh, fresh+1)
	} else {
		n = t.Load(slotOf(h))
		t.Store(ringHead, h+1)
	}
	t.Check(n != 0, "an empty slot is taken")
	if n != 0 {
		user := ringUser + interleave.Word(n-1)
		t.Check(t.Swap(user, 1) == 0, "number %d is given to two", n)
	}
	return n
}

// ringProgram has a ring of some numbers, at most one for each slot, a taker that takes two, hands one over, which it
// needs again as all others are used, and gives the other back, and a giver that puts what it is handed. filled: all
// numbers circulate.
func ringProgram(numbers int, filled bool, rules ringRules) *interleave.Program {
	waits := func(t *interleave.T) (n uint64) {
		for n = ringTake(t, numbers, rules); n == 0; n = ringTake(t, numbers, rules) {
			t.Pause()
		}
		return n
	}
	hand := func(t *interleave.T, n uint64) {
		t.Await(func(m interleave.Memory) bool { return m.Load(ringHand) == 0 })
		t.Swap(ringHand, n)
	}
	taker := func(t *interleave.T) {
		n := waits(t)
		hand(t, waits(t)) // another than its slot has had
		t.Swap(ringUser+interleave.Word(n-1), 0)
		h := t.Load(ringHead) - 1
		t.Store(slotOf(h), n)
		if !rules.keptHead {
			t.Store(ringHead, h)
		}
		taken := make([]uint64, numbers)
		for k := range taken {
			taken[k] = waits(t)
		}
		for _, n := range taken {
			hand(t, n)
		}
	}
	giver := func(t *interleave.T) {
		for round := range uint64(1 + numbers) {
			t.At(round)
			t.Await(func(m interleave.Memory) bool { return m.Load(ringHand) != 0 })
			n := t.Swap(ringHand, 0)
			t.Swap(ringUser+interleave.Word(n-1), 0)
			tail := t.Load(ringTail)
			if rules.tailFirst {
				t.Store(ringTail, tail+1)
				t.Store(slotOf(tail), n)
			} else {
				t.Store(slotOf(tail), n)
				t.Store(ringTail, tail+1)
			}
		}
	}
	return &interleave.Program{
		Names: []string{"head", "tail", "slot0", "slot1", "slot2", "slot3", "hand", "user1", "user2",
			"user3", "user4", "fresh"},
		TSO:  true,
		Init: func(w []uint64) { ringInit(w, numbers, filled) },
		Threads: []interleave.Thread{
			{Name: "taker", Body: taker}, {Name: "giver", Body: giver},
		},
		Final: func(m interleave.Memory, _ []bool) error { return ringLeft(m, numbers) },
	}
}

// ringInit gives a ring its numbers, which circulate, or were not taken yet.
func ringInit(w []uint64, numbers int, filled bool) {
	if w[ringFresh] = 1; !filled {
		return
	}
	w[ringTail], w[ringFresh] = uint64(numbers), uint64(numbers)+1
	for k := range numbers {
		w[slotOf(uint64(k))] = uint64(k + 1)
	}
}

// ringLeft checks that a ring has all its numbers.
func ringLeft(m interleave.Memory, numbers int) error {
	h, fresh := m.Load(ringHead), m.Load(ringFresh)
	put := m.Load(ringTail) - h
	if n := put + uint64(numbers) + 1 - fresh; n != uint64(numbers) {
		return fmt.Errorf("%d of %d numbers are left", n, numbers)
	}
	left := uint64(0)
	for k := range put {
		left |= 1 << m.Load(slotOf(h+k))
	}
	for ; fresh <= uint64(numbers); fresh++ {
		left |= 1 << fresh
	}
	if left != 1<<(numbers+1)-2 {
		return fmt.Errorf("the numbers left are those of %#b", left)
	}
	return nil
}

// TestModel runs the ring in every order of its steps, with a slot more than there are numbers and with all slots
// used, which circulate from the beginning or not; mutants are found.
func TestModel(t *testing.T) {
	for _, filled := range []bool{false, true} {
		for _, numbers := range []int{ringSlots - 1, ringSlots} {
			r, err := interleave.Explore(ringProgram(numbers, filled, ringRules{}))
			if err != nil {
				t.Errorf("%d numbers, filled %v: %v", numbers, filled, err)
			}
			t.Logf("%d numbers, filled %v: %+v", numbers, filled, r)
		}
		for name, rules := range map[string]ringRules{
			"a number is a rendezvous before it is there": {tailFirst: true},
			"what is not there is taken":                  {noTail: true},
			"what is given back is lost":                  {keptHead: true},
		} {
			for _, numbers := range []int{ringSlots - 1, ringSlots} {
				if _, err := interleave.Explore(ringProgram(numbers, filled, rules)); err == nil {
					t.Errorf("%s, %d numbers, filled %v: not found", name, numbers, filled)
				}
			}
		}
	}
}

// TestStress: two threads that take under a lock and two that put under another, with an asker, on memory that each
// holder of a number writes plainly.
func TestStress(t *testing.T) {
	const numbers, rounds = 5, 4000
	var r Ring
	r.Open(0, numbers)
	var takers, givers sync.Mutex
	var used [numbers]int
	hand := make(chan uint32, numbers)
	var left, done atomic.Int64
	left.Store(rounds)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for left.Load() > 0 {
				takers.Lock()
				n, ok := r.Take()
				if ok && left.Load()%3 == 0 {
					r.Undo(n)
					n, ok = r.Take()
				}
				takers.Unlock()
				if !ok {
					runtime.Gosched()
					continue
				}
				used[n]++
				hand <- n
				left.Add(-1)
			}
		})
		all.Go(func() {
			for done.Load() < rounds {
				select {
				case n := <-hand:
					used[n]++
					givers.Lock()
					r.Put(n)
					givers.Unlock()
					done.Add(1)
				default:
					_ = r.Len()
					runtime.Gosched()
				}
			}
		})
	}
	all.Wait()
	for len(hand) > 0 {
		r.Put(<-hand)
	}
	seen := [numbers]bool{}
	for range numbers {
		n, ok := r.Take()
		if !ok || seen[n] {
			t.Fatalf("number %d, %v, is lost or there twice", n, ok)
		}
		seen[n] = true
	}
}
