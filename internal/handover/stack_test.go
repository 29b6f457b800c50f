package handover

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/interleave"
)

// stackRules are mutants.
type stackRules struct {
	stored bool // a push stores the top
	copied bool // the thread that takes reads the top, and then clears it
	early  bool // it reads whether there are more before it gives the lock back
	once   bool // it does not read that at all
}

// The words of program: the top, the lock, what is below each of three, and how often each
// was taken.
const (
	stackTop   = interleave.Word(0)
	stackLock  = interleave.Word(1)
	stackBelow = interleave.Word(1) // + its number
	stackTaken = interleave.Word(4) // + its number
	stackMost  = 3
)

func modelLeave(t *interleave.T, n uint64, rules stackRules) {
	for {
		top := t.Load(stackTop)
		t.Store(stackBelow+interleave.Word(n), top)
		if rules.stored {
			t.Store(stackTop, n)
			break
		}
		if t.CAS(stackTop, top, n) {
			break
		}
	}
}

func modelWork(t *interleave.T, rules stackRules) {
	for t.CAS(stackLock, 0, 1) {
		var n uint64
		if rules.copied {
			n = t.Load(stackTop)
			t.Store(stackTop, 0)
		} else {
			n = t.Swap(stackTop, 0)
		}
		for ; n != 0; n = t.Load(stackBelow + interleave.Word(n)) {
			t.Check(t.Add(stackTaken+interleave.Word(n), 1) <= 1, "thing %d is taken twice", n)
		}
		more := rules.early && t.Load(stackTop) != 0
		t.StoreSC(stackLock, 0)
		if !rules.early && !rules.once {
			more = t.Load(stackTop) != 0
		}
		if !more {
			return
		}
	}
}

// program has one thread that leaves two things, and another that leaves one. Each works on what there is.
func program(rules stackRules) *interleave.Program {
	leave := func(numbers ...uint64) func(*interleave.T) {
		return func(t *interleave.T) {
			for _, n := range numbers {
				modelLeave(t, n, rules)
				modelWork(t, rules)
			}
		}
	}
	return &interleave.Program{
		Names:   []string{"top", "lock", "below1", "below2", "below3", "taken1", "taken2", "taken3"},
		Threads: []interleave.Thread{{Name: "two", Body: leave(1, 2)}, {Name: "one", Body: leave(3)}},
		Final: func(m interleave.Memory, _ []bool) error {
			for n := range interleave.Word(stackMost) {
				if m.Load(stackTaken+n+1) != 1 {
					return fmt.Errorf("thing %d is left, and no thread works on it", n+1)
				}
			}
			return nil
		},
	}
}

// TestModel leaves things and works on them in every order of the steps: each is taken, once, though no thread waits
// for another; mutants are found.
func TestModel(t *testing.T) {
	interleave.Check(t, program, map[string]stackRules{
		"a push stores":               {stored: true},
		"the top is read and cleared": {copied: true},
		"more are found early":        {early: true},
		"more are not found":          {once: true},
	})
}

// TestTaken: a node that is taken keeps no other.
func TestTaken(t *testing.T) {
	var s Stack[int]
	first, second := &Node[int]{It: 1}, &Node[int]{It: 2}
	s.Push(first)
	s.Push(second)
	if list := s.Take(nil); len(list) != 2 || first.below != nil || second.below != nil {
		t.Errorf("taken: %v; below the second is %v", list, second.below)
	}
}

// TestStress: threads that leave things, each of which works on what there is unless another does: all are taken,
// those of one thread in order.
func TestStress(t *testing.T) {
	const threads, each = 4, 5000
	type thing struct{ thread, n int }
	var s Stack[thing]
	var mu sync.Mutex
	var next [threads]int // under mu, as list
	var list []thing
	work := func() {
		for mu.TryLock() {
			list = s.Take(list[:0])
			for _, it := range list {
				if next[it.thread] != it.n {
					t.Errorf("thread %d: thing %d, want %d", it.thread, it.n, next[it.thread])
				}
				next[it.thread]++
			}
			mu.Unlock()
			if !s.Any() {
				return
			}
		}
	}
	var all sync.WaitGroup
	for thread := range threads {
		all.Go(func() {
			for n := range each {
				s.Push(&Node[thing]{It: thing{thread, n}})
				work()
				if n%64 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	all.Wait()
	if next != [threads]int{each, each, each, each} || s.Any() {
		t.Errorf("taken: %v, more: %v", next, s.Any())
	}
}
