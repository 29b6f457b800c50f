package cuda

import (
	"testing"

	"github.com/weft-fabric/weft/internal/interleave"
)

// A model of the recall of a mapping against its use and against the death of the process that has it, in every order
// of the steps: [Mappings], the owner's list of what has fetched its memory, and its close of a region. Each step on
// the
// entry stands for what happens under the mutex at once.

// recallRules are mutants.
type recallRules struct {
	askFirst     bool // the owner is asked before the entry is there
	noteLater    bool // the owner notes what fetches after it has checked whether the memory is still offered
	noWait       bool // a recall takes the mapping away under its users
	skipOpening  bool // a recall does not wait for an entry that is being opened
	freeAtOnce   bool // the owner does not wait for the answer
	ignoreDeaths bool // the owner waits for the answer of a process that is dead
}

// Words of the model.
const (
	wordOffer  interleave.Word = iota // the owner's: offered, with what fetched it, or withdrawn
	wordEntry                         // entryThere, entryLeaving, and the users
	wordMapped                        // the memory is mapped
	wordFreed                         // the owner has freed it
	wordAsked                         // a recall
	wordGiven                         // its answer
)

const (
	offerOpen, offerFetched, offerWithdrawn = 0, 1, 2

	entryThere, entryLeaving, entryUser = 1, 2, 4
)

// change applies f to the entry in one step, and returns what it made of what.
func change(t *interleave.T, f func(e uint64) uint64) (was, is uint64) {
	for {
		was = t.Load(wordEntry)
		if is = f(was); t.CAS(wordEntry, was, is) {
			return was, is
		}
		t.Pause()
	}
}

// fetch asks the owner for the memory.
func (rules *recallRules) fetch(t *interleave.T) bool {
	if rules.noteLater {
		if t.Load(wordOffer) == offerWithdrawn {
			return false
		}
		t.StoreSC(wordOffer, offerFetched)
		return true
	}
	return t.CAS(wordOffer, offerOpen, offerFetched) || t.Load(wordOffer) == offerFetched
}

// end takes a user off, and closes the mapping if it is the last one of a recalled entry, or of one that was not
// opened.
func end(t *interleave.T, opened bool) {
	_, is := change(t, func(e uint64) uint64 {
		e -= entryUser
		if !opened {
			e |= entryLeaving
		}
		return e
	})
	if is == entryThere|entryLeaving {
		t.StoreSC(wordMapped, 0)
		t.StoreSC(wordEntry, 0)
	}
}

// use is one operation that wants the memory.
func (rules *recallRules) use(t *interleave.T) {
	granted := rules.askFirst && rules.fetch(t)
	if rules.askFirst && !granted {
		return
	}
	for {
		was, _ := change(t, func(e uint64) uint64 {
			switch {
			case e == 0:
				return entryThere | entryUser
			case e&entryLeaving != 0:
				return e
			}
			return e + entryUser
		})
		if was&entryLeaving != 0 {
			t.Await(func(m interleave.Memory) bool { return m.Load(wordEntry)&entryLeaving == 0 })
			continue
		}
		if was == 0 {
			if !granted && !rules.fetch(t) {
				end(t, false)
				return
			}
			t.StoreSC(wordMapped, 1)
		} else {
			opened := false
			t.Await(func(m interleave.Memory) bool { // until it is open, or cannot be
				opened = m.Load(wordMapped) == 1
				return opened || m.Load(wordEntry)&entryLeaving != 0
			})
			if t.Load(wordMapped) == 0 {
				end(t, true)
				return
			}
		}
		t.Check(t.Load(wordMapped) == 1, "copied from a mapping that is closed")
		t.Check(t.Load(wordFreed) == 0, "copied from memory that is freed")
		end(t, true)
		return
	}
}

// answer is the thread of the process that has the mapping, at a recall.
func (rules *recallRules) answer(t *interleave.T) {
	over := false
	t.Await(func(m interleave.Memory) bool {
		over = m.Load(wordFreed) != 0
		return over || m.Load(wordAsked) != 0
	})
	if t.Load(wordAsked) == 0 {
		return
	}
	if rules.skipOpening && t.Load(wordMapped) == 0 {
		t.StoreSC(wordGiven, 1)
		return
	}
	was, is := change(t, func(e uint64) uint64 {
		if e == 0 {
			return 0
		}
		return e | entryLeaving
	})
	switch {
	case is == entryThere|entryLeaving && was == entryThere, rules.noWait && is != 0:
		t.StoreSC(wordMapped, 0)
		t.StoreSC(wordEntry, 0)
	case is != 0:
		t.Await(func(m interleave.Memory) bool { return m.Load(wordEntry)&entryLeaving == 0 })
	}
	t.StoreSC(wordGiven, 1)
}

// recallProgram has an owner that closes its region and frees, some operations of another process, and that process's
// answer.
func recallProgram(users, deaths int, rules recallRules) *interleave.Program {
	first := 2
	if deaths != 0 {
		first = 1
	}
	p := &interleave.Program{Names: []string{"offer", "entry", "mapped", "freed", "asked", "given"}, Deaths: deaths,
		Threads: []interleave.Thread{
			{Name: "owner", Body: func(t *interleave.T) {
				if t.Swap(wordOffer, offerWithdrawn) == offerFetched {
					t.StoreSC(wordAsked, 1)
					if !rules.freeAtOnce {
						died := false
						t.Await(func(m interleave.Memory) bool {
							died = deaths != 0 && !rules.ignoreDeaths && m.Ended(first)
							return died || m.Load(wordGiven) != 0
						})
						t.Check(died || t.Load(wordMapped) == 0, "freed while it is mapped")
					}
				}
				t.StoreSC(wordFreed, 1)
			}},
			{Name: "answer", Body: func(t *interleave.T) { rules.answer(t) }},
		}}
	if deaths != 0 { // the process dies as a whole: it does not answer
		p.Threads = p.Threads[:1]
	}
	for range users {
		p.Threads = append(p.Threads, interleave.Thread{Name: "use", Killable: true, Body: rules.use})
	}
	return p
}

func TestModelRecall(t *testing.T) {
	for users := 1; users <= 2; users++ {
		r, err := interleave.Explore(recallProgram(users, 0, recallRules{}))
		if err != nil {
			t.Errorf("%d users: %v", users, err)
		}
		t.Logf("%d users: %+v", users, r)
	}
}

// TestModelRecallDeath has the process that fetched the memory end at any step: the owner goes on.
func TestModelRecallDeath(t *testing.T) {
	if _, err := interleave.Explore(recallProgram(1, 1, recallRules{})); err != nil {
		t.Error(err)
	}
	if _, err := interleave.Explore(recallProgram(1, 1, recallRules{ignoreDeaths: true})); err == nil {
		t.Error("an owner that waits for the dead is not found")
	}
}

func TestModelRecallFindsMutants(t *testing.T) {
	for name, rules := range map[string]recallRules{
		"asked before the entry is there":     {askFirst: true},
		"noted after the poll":                {noteLater: true},
		"taken away under users":              {noWait: true},
		"not waited for what is being opened": {skipOpening: true},
		"freed before the answer":             {freeAtOnce: true},
	} {
		if _, err := interleave.Explore(recallProgram(2, 0, rules)); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}
