package proxy

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/internal/interleave"
)

// Models of the algorithms of this package, run in every order of their steps
// under x86's store buffers. Mutants show that each of their steps is needed.

// bellRules are the bell's mutants.
type bellRules struct {
	noFence    bool // what rings does not fence between publishing and reading the word
	plainArm   bool // the sleeper arms with a store that only releases
	pollFirst  bool // the sleeper searches for work before it arms
	plainClear bool // what rings clears the word with a store instead of a swap, before it polls
}

// bellProgram is a sleeper that waits for work of several requesters, each of which
// posts once and rings: [Bell] with the step that a requester takes before it, a
// release store.
func bellProgram(requesters int, rules bellRules, tso bool) *interleave.Program {
	const word, event, work = interleave.Word(0), interleave.Word(1), interleave.Word(2)
	names := []string{"word", "event"}
	for i := range requesters {
		names = append(names, fmt.Sprintf("work%d", i))
	}
	ready := func(t *interleave.T) (n int) {
		for i := range requesters {
			n += int(t.Load(work + interleave.Word(i)))
		}
		return n
	}
	sleeper := func(t *interleave.T) {
		for {
			t.At(1)
			if ready(t) == requesters {
				return
			}
			if rules.plainArm {
				t.Store(word, bellAsleep) // B0
			} else {
				t.StoreSC(word, bellAsleep)
			}
			if !rules.pollFirst && ready(t) == requesters {
				return
			}
			t.Await(func(m interleave.Memory) bool { return m.Load(event) != 0 }) // epoll
			t.StoreSC(word, bellAwake)
			t.Swap(event, 0) // reads the event file
		}
	}
	program := &interleave.Program{Names: names, TSO: tso,
		Threads: []interleave.Thread{{Name: "sleeper", Body: sleeper}}}
	for i := range requesters {
		program.Threads = append(program.Threads, interleave.Thread{Name: fmt.Sprintf("requester%d", i),
			Body: func(t *interleave.T) {
				t.Store(work+interleave.Word(i), 1)
				if !rules.noFence {
					t.Fence() // B1
				}
				if rules.plainClear {
					t.Store(word, bellAwake)
					return
				}
				if w := t.Load(word); w != bellAwake && t.CAS(word, w, bellAwake) {
					t.Swap(event, 1)
				}
			}})
	}
	return program
}

func TestModelBell(t *testing.T) {
	for requesters := 1; requesters <= 3; requesters++ {
		r, err := interleave.Explore(bellProgram(requesters, bellRules{}, true))
		if err != nil {
			t.Errorf("%d requesters: %v", requesters, err)
		}
		t.Logf("%d requesters: %+v", requesters, r)
	}
}

func TestModelBellFindsMutants(t *testing.T) {
	for name, rules := range map[string]bellRules{
		"no fence before the read the word": {noFence: true},
		"armed by a plain store":            {plainArm: true},
		"polled before it armed":            {pollFirst: true},
		"cleared without ringing":           {plainClear: true},
	} {
		if _, err := interleave.Explore(bellProgram(2, rules, true)); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
	// The first two are faults of the order of memory accesses only.
	for _, rules := range []bellRules{{noFence: true}, {plainArm: true}} {
		if _, err := interleave.Explore(bellProgram(2, rules, false)); err != nil {
			t.Errorf("%+v without store buffers: %v", rules, err)
		}
	}
}

// changeRules are mutants of how the list of engines is handed over.
type changeRules struct {
	noWait   bool // Remove does not wait until the loop has seen the list
	seeEarly bool // the loop says that it has seen the list before it works with it
}

// changeProgram is [Progress.Remove] beside the loop: engine 1 is on the list, is
// taken off and then closed; the loop must not use it any more.
func changeProgram(rules changeRules) *interleave.Program {
	const next, seen, closed, using, stop = interleave.Word(0), interleave.Word(1), interleave.Word(2),
		interleave.Word(3), interleave.Word(4)
	loop := func(t *interleave.T) {
		list := uint64(1)
		for t.Load(stop) == 0 {
			t.At(list)
			if n := t.Load(next); n != list {
				if rules.seeEarly {
					t.StoreSC(seen, n)
				} else {
					list = n
					t.StoreSC(seen, n)
				}
			}
			if list == 1 { // engine 1 does a batch
				t.StoreSC(using, 1)
				t.Check(t.Load(closed) == 0, "the engine was closed")
				t.StoreSC(using, 0)
			}
			if rules.seeEarly {
				list = t.Load(seen)
			}
			t.Pause()
		}
	}
	remover := func(t *interleave.T) {
		t.StoreSC(next, 2)
		if !rules.noWait {
			t.Await(func(m interleave.Memory) bool { return m.Load(seen) == 2 })
		}
		t.Store(closed, 1)
		t.Store(stop, 1)
	}
	return &interleave.Program{
		Names: []string{"next", "seen", "closed", "using", "stop"}, TSO: true,
		Init:    func(w []uint64) { w[next], w[seen] = 1, 1 },
		Threads: []interleave.Thread{{Name: "loop", Body: loop}, {Name: "remover", Body: remover}},
	}
}

func TestModelChange(t *testing.T) {
	interleave.Check(t, changeProgram, map[string]changeRules{
		"remove does not wait": {noWait: true}, "seen too early": {seeEarly: true},
	})
}
