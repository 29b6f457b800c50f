package stripe

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/internal/interleave"
)

// Models of the lease and of the request table's free list, run in every order
// of their steps under x86's store buffers. Mutants show that each step is
// needed.

// leaseRules are mutants of the lease.
type leaseRules struct {
	plain bool // a stripe is taken by a load and a store
	early bool // the lease ends before the last store under it
	none  bool // the whole set is one stripe that nothing leases
}

// leaseProgram has threads that post once each over a number of stripes: what a
// post does with a stripe is to add one to a plain word of it. A post that
// finds all stripes taken is refused and tried again.
func leaseProgram(threads, stripes int, rules leaseRules) *interleave.Program {
	lease := func(i int) interleave.Word { return interleave.Word(2 * i) }
	used := func(i int) interleave.Word { return interleave.Word(2*i + 1) }
	p := &interleave.Program{TSO: true}
	for i := range stripes {
		p.Names = append(p.Names, fmt.Sprintf("lease%d", i), fmt.Sprintf("used%d", i))
	}
	take := func(t *interleave.T, i int) bool {
		switch {
		case rules.none:
			return true
		case rules.plain:
			if t.Load(lease(i)) != 0 {
				return false
			}
			t.Store(lease(i), 1)
			return true
		}
		return t.CAS(lease(i), 0, 1)
	}
	for n := range threads {
		p.Threads = append(p.Threads, interleave.Thread{Name: fmt.Sprintf("requester%d", n),
			Body: func(t *interleave.T) {
				for {
					t.At(1)
					for k := range stripes {
						i := (n + k) % stripes
						if !take(t, i) {
							continue
						}
						v := t.Load(used(i))
						if rules.early {
							t.Store(lease(i), 0)
						}
						t.Store(used(i), v+1)
						t.Store(lease(i), 0) // release
						return
					}
					t.Pause()
				}
			}})
	}
	p.Final = func(m interleave.Memory, _ []bool) error {
		sum := 0
		for i := range stripes {
			sum += int(m.Load(used(i)))
		}
		if sum != threads {
			return fmt.Errorf("%d posts left %d", threads, sum)
		}
		return nil
	}
	return p
}

func TestModelLease(t *testing.T) {
	for _, c := range [][2]int{{2, 1}, {3, 1}, {3, 2}, {4, 2}} {
		if testing.Short() && c[0] > 3 {
			continue
		}
		r, err := interleave.Explore(leaseProgram(c[0], c[1], leaseRules{}))
		if err != nil {
			t.Errorf("%d threads, %d stripes: %v", c[0], c[1], err)
		}
		t.Logf("%d threads, %d stripes: %+v", c[0], c[1], r)
	}
	for name, rules := range map[string]leaseRules{
		"taken without a compare-and-swap": {plain: true},
		"given back too early":             {early: true},
		"no lease":                         {none: true},
	} {
		if _, err := interleave.Explore(leaseProgram(2, 1, rules)); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// listRules are mutants of Alloc and Free.
type listRules struct {
	noLease   bool // Alloc is called without the stripe's lease
	pushFirst bool // Free puts the entry on the list before it marks it free
	plainFree bool // Free marks it by a load and a store
	plainPush bool // Free puts it on the list by a store
}

// The words of listProgram, for two entries. Numbers of entries start at 1.
const (
	listLease = interleave.Word(0)
	listHead  = interleave.Word(1)
	listNext  = interleave.Word(2) // of entry 1, then of entry 2
	listGen   = interleave.Word(4)
	listUser  = interleave.Word(6) // 1 while something has the entry
)

// genFree marks a generation as free, as freeBit.
const genFree = 8

func wordOf(first interleave.Word, entry uint64) interleave.Word {
	return first + interleave.Word(entry-1)
}

// listAlloc is [Table.Alloc] by what waits for the stripe's lease; 0: the list is
// empty.
func listAlloc(t *interleave.T, rules listRules) (entry, gen uint64) {
	if rules.noLease {
		return listPop(t)
	}
	for !t.CAS(listLease, 0, 1) {
		t.Pause()
	}
	entry, gen = listPop(t)
	t.Store(listLease, 0)
	return entry, gen
}

func listPop(t *interleave.T) (entry, gen uint64) {
	for {
		h := t.Load(listHead)
		if h == 0 {
			return 0, 0
		}
		next := t.Load(wordOf(listNext, h))
		if t.CAS(listHead, h, next) {
			gen = t.Load(wordOf(listGen, h))&^genFree + 1
			t.StoreSC(wordOf(listGen, h), gen)
			t.Check(t.Swap(wordOf(listUser, h), 1) == 0, "entry %d is given to two", h)
			return h, gen
		}
	}
}

// listFree is [Table.Free]; false: the id is stale.
func listFree(t *interleave.T, entry, gen uint64, rules listRules) bool {
	push := func() {
		for {
			h := t.Load(listHead)
			t.Store(wordOf(listNext, entry), h)
			if rules.plainPush {
				t.Store(listHead, entry)
				return
			}
			if t.CAS(listHead, h, entry) {
				return
			}
		}
	}
	word := wordOf(listGen, entry)
	if rules.pushFirst {
		t.StoreSC(wordOf(listUser, entry), 0)
		push()
		t.StoreSC(word, gen|genFree)
		return true
	}
	if rules.plainFree {
		if t.Load(word) != gen {
			return false
		}
		t.StoreSC(word, gen|genFree)
	} else if !t.CAS(word, gen, gen|genFree) {
		return false
	}
	t.StoreSC(wordOf(listUser, entry), 0)
	push()
	return true
}

func listNames() []string {
	return []string{"lease", "head", "next1", "next2", "gen1", "gen2", "user1", "user2"}
}

// reuseProgram has two threads that take requests of one stripe, keep some and
// give some back: in the case of ABA the head is again the entry that a popper
// has read, and its successor is in use.
func reuseProgram(rules listRules) *interleave.Program {
	keeps := func(t *interleave.T) {
		for range 2 {
			listAlloc(t, rules)
		}
	}
	returns := func(t *interleave.T) {
		first, gen := listAlloc(t, rules)
		listAlloc(t, rules)
		if first != 0 {
			t.Check(listFree(t, first, gen, rules), "the first free of entry %d was refused", first)
		}
	}
	return &interleave.Program{
		Names: listNames(), TSO: true,
		Init: func(w []uint64) {
			w[listHead], w[listNext] = 1, 2 // 1, 2
			w[listGen], w[listGen+1] = genFree, genFree
		},
		Threads: []interleave.Thread{{Name: "keeps", Body: keeps}, {Name: "returns", Body: returns}},
	}
}

// answerProgram: two answers for one request, of which one is a duplicate, and
// an answer for another, beside a thread that posts: each request is freed once
// and none is lost.
func answerProgram(rules listRules) *interleave.Program {
	const freed = interleave.Word(8)
	answer := func(entry uint64) func(t *interleave.T) {
		return func(t *interleave.T) {
			if listFree(t, entry, 1, rules) {
				t.Add(freed, 1)
			}
		}
	}
	requester := func(t *interleave.T) {
		for {
			t.At(1)
			if e, gen := listAlloc(t, rules); e != 0 {
				t.Check(gen == 2, "entry %d has generation %d", e, gen)
				return
			}
			t.Pause()
		}
	}
	return &interleave.Program{
		Names: append(listNames(), "freed"), TSO: true,
		Init: func(w []uint64) {
			w[listGen], w[listGen+1], w[listUser], w[listUser+1] = 1, 1, 1, 1 // both in use
		},
		Threads: []interleave.Thread{
			{Name: "answer", Body: answer(1)}, {Name: "duplicate", Body: answer(1)},
			{Name: "other", Body: answer(2)}, {Name: "requester", Body: requester},
		},
		Final: func(m interleave.Memory, _ []bool) error {
			if n := m.Load(freed); n != 2 {
				return fmt.Errorf("2 requests were freed %d times", n)
			}
			left := m.Load(listHead)
			if left == 0 || m.Load(wordOf(listNext, left)) != 0 || m.Load(wordOf(listGen, left))&genFree == 0 {
				return fmt.Errorf("not one request is left on the list: head %d", left)
			}
			return nil
		},
	}
}

func TestModelRequests(t *testing.T) {
	for name, p := range map[string]*interleave.Program{"reuse": reuseProgram(listRules{}),
		"answers": answerProgram(listRules{})} {
		if testing.Short() {
			continue // the race detector makes it slow, and finds nothing in a model
		}
		r, err := interleave.Explore(p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %+v", name, r)
	}
	for name, p := range map[string]*interleave.Program{
		"alloc without the lease":          reuseProgram(listRules{noLease: true}),
		"on the list before it is free":    answerProgram(listRules{pushFirst: true}),
		"freed without a compare-and-swap": answerProgram(listRules{plainFree: true}),
		"pushed by a store":                answerProgram(listRules{plainPush: true}),
	} {
		_, err := interleave.Explore(p)
		if err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}
