package lease

import (
	"sync"
	"testing"
)

// TestOneAtATime has threads count in a plain variable behind the lease.
func TestOneAtATime(t *testing.T) {
	const threads, turns = 4, 1000
	var word uint32
	g := Guard(&word, new(int))
	var all sync.WaitGroup
	for range threads {
		all.Go(func() {
			for range turns {
				*g.Wait()++
				g.Give()
			}
		})
	}
	all.Wait()
	if n := *g.Wait(); n != threads*turns {
		t.Errorf("counted %d, want %d", n, threads*turns)
	}
}

// TestTake holds what each method returns, by the lease's word.
func TestTake(t *testing.T) {
	var word uint32
	state := new(int)
	g := Guard(&word, state)
	if g.Take() != state || word != 1 {
		t.Fatalf("a free lease is not taken: %d", word)
	}
	if g.Take() != nil {
		t.Error("a taken lease is taken again")
	}
	if g.Taken() != state {
		t.Error("what has the lease does not reach the state")
	}
	if g.Give(); word != 0 {
		t.Error("the lease is not given")
	}
	if n := testing.AllocsPerRun(100, func() { g.Take(); g.Give() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestNone has state that needs no lease, and none at all.
func TestNone(t *testing.T) {
	g := Guard(nil, new(int))
	for range 2 {
		if g.Take() == nil {
			t.Error("state without a lease is not returned each time")
		}
	}
	g.Give()
	if g = (Guarded[int]{}); g.Take() != nil || g.Taken() != nil {
		t.Error("the zero value has state")
	}
}

// TestPart: a part is reached by the state behind the same lease, and by that alone.
func TestPart(t *testing.T) {
	var word uint32
	g, other := Guard(&word, new(int)), Guard(&word, new(int))
	part := new(string)
	p := PartOf(&g, part)
	if p.Of(g.Take()) != part || p.Alone() != part {
		t.Error("the lease's holder does not reach the part")
	}
	if p.Of(nil) != nil || p.Of(other.Alone()) != nil {
		t.Error("what is behind another lease reaches the part")
	}
}
