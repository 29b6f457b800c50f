package slots

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/interleave"
)

// slotRules are mutants.
type slotRules struct {
	uncounted bool // the top of the stack does not say how often it was changed
	late      bool // a slot is in the stack before it says what is below it
	usedFirst bool // a slot may be taken before it has memory
}

// The words of slotProgram: the top of the stack, how many slots are in use, and of each of three slots whether it has
// memory, what is below it, and whether something has it.
const (
	slotFree  = interleave.Word(0)
	slotUsed  = interleave.Word(1)
	slotRoom  = interleave.Word(2)
	slotBelow = interleave.Word(5)
	slotOwner = interleave.Word(8)
	slotsMost = 3
)

// changed is the top of the stack with another slot at it.
func (r slotRules) changed(top, slot uint64) uint64 {
	if r.uncounted {
		return slot
	}
	return (top>>32+1)<<32 | slot
}

func modelTake(t *interleave.T, rules slotRules) (n uint64) {
	for top := t.Load(slotFree); uint32(top) != 0; top = t.Load(slotFree) {
		n = uint64(uint32(top)) - 1
		below := t.Load(slotBelow + interleave.Word(n))
		if t.CAS(slotFree, top, rules.changed(top, below)) {
			return n
		}
	}
	for {
		n = t.Load(slotUsed)
		room := slotRoom + interleave.Word(n)
		t.Check(n < slotsMost, "a slot is lost")
		if !rules.usedFirst {
			t.CAS(room, 0, 1)
		}
		taken := t.CAS(slotUsed, n, n+1)
		if rules.usedFirst && taken {
			t.CAS(room, 0, 1)
		}
		if taken {
			return n
		}
	}
}

func modelGive(t *interleave.T, n uint64, rules slotRules) {
	below := slotBelow + interleave.Word(n)
	for {
		top := t.Load(slotFree)
		if !rules.late {
			t.Store(below, uint64(uint32(top)))
		}
		if !t.CAS(slotFree, top, rules.changed(top, n+1)) {
			continue
		}
		if rules.late {
			t.Store(below, uint64(uint32(top)))
		}
		return
	}
}

// slotProgram has two slots that are free, and threads that take and give slots: two at once; one, and then see which
// have memory.
func slotProgram(rules slotRules) *interleave.Program {
	own := func(t *interleave.T) uint64 {
		n := modelTake(t, rules)
		t.Check(t.Swap(slotOwner+interleave.Word(n), 1) == 0, "slot %d is given to two", n)
		return n
	}
	leave := func(t *interleave.T, n uint64) {
		t.Swap(slotOwner+interleave.Word(n), 0)
		modelGive(t, n, rules)
	}
	two := func(t *interleave.T) {
		a, b := own(t), own(t)
		leave(t, a)
		leave(t, own(t))
		leave(t, b)
	}
	one := func(t *interleave.T) {
		leave(t, own(t))
		for n := range t.Load(slotUsed) {
			t.Check(t.Load(slotRoom+interleave.Word(n)) == 1, "slot %d has no memory", n)
		}
	}
	return &interleave.Program{
		Names: []string{"free", "used", "room0", "room1", "room2", "below0", "below1", "below2", "owner0", "owner1",
			"owner2"},
		Init: func(w []uint64) {
			w[slotFree], w[slotBelow], w[slotUsed] = 1, 2, 2
			w[slotRoom], w[slotRoom+1] = 1, 1
		},
		Final: slotsLeft,
		Threads: []interleave.Thread{
			{Name: "two", Body: two}, {Name: "one", Body: one},
		},
	}
}

// slotsLeft checks that all slots are free.
func slotsLeft(m interleave.Memory, _ []bool) error {
	left := uint64(0)
	for n := m.Load(slotFree) & (1<<32 - 1); n != 0 && left <= slotsMost; n = m.Load(slotBelow + interleave.Word(n-1)) {
		left++
	}
	if used := m.Load(slotUsed); left != used {
		return fmt.Errorf("%d of %d slots are left", left, used)
	}
	return nil
}

// TestModel takes and gives slots in every order of the steps; mutants are found.
func TestModel(t *testing.T) {
	interleave.Check(t, slotProgram, map[string]slotRules{
		"the top is not counted": {uncounted: true},
		"what is below is late":  {late: true},
		"memory is late":         {usedFirst: true},
	})
}

// thing has a slot.
type thing struct {
	slot uint32      // the holder's
	seen atomic.Bool // set by another thread
}

// TestStress: threads that take slots, more than those of the first chunk, find their things, and give the slots up;
// every thing is written plainly by what has it. Another walks over all.
func TestStress(t *testing.T) {
	const threads, each, rounds = 4, 12, 400
	var s Table[thing]
	var holders [threads * each]atomic.Int32
	var all sync.WaitGroup
	var ended atomic.Bool
	all.Go(func() {
		for !ended.Load() {
			s.Each(func(it *thing) bool {
				it.seen.Store(true)
				return true
			})
			runtime.Gosched()
		}
	})
	var working sync.WaitGroup
	for range threads {
		working.Go(func() {
			var things [each]thing
			for round := range rounds {
				for i := range things {
					it := &things[i]
					n, ok := s.Take(it)
					if !ok || holders[n].Add(1) != 1 {
						t.Errorf("slot %d, %v, is given to two", n, ok)
						return
					}
					it.slot = n
				}
				for i := range things {
					it := &things[(i+round)%each]
					if s.At(uint64(it.slot)) != it {
						t.Errorf("slot %d has another thing", it.slot)
						return
					}
					holders[it.slot].Add(-1)
					s.Give(it.slot)
				}
			}
		})
	}
	working.Wait()
	ended.Store(true)
	all.Wait()
	if n := s.used.Load(); n > threads*each {
		t.Errorf("%d slots for %d things", n, threads*each)
	}
}

// TestTable: all slots are given, each once, and one that is free has nothing. What was in use once is taken
// without an allocation.
func TestTable(t *testing.T) {
	var s Table[thing]
	it := new(thing)
	for want := range uint32(Max) {
		if n, ok := s.Take(it); !ok || n != want || s.At(uint64(n)) != it {
			t.Fatalf("slot %d, %v, want %d", n, ok, want)
		}
	}
	if _, ok := s.Take(it); ok || s.At(Max) != nil {
		t.Error("more slots than there are")
	}
	s.Give(7)
	if s.At(7) != nil {
		t.Error("a slot that is free has something")
	}
	if n := testing.AllocsPerRun(100, func() {
		n, _ := s.Take(it)
		s.Give(n)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
