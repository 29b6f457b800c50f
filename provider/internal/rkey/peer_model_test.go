package rkey

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/interleave"
)

// peerRules are mutants.
type peerRules struct {
	listStored bool // a list with one region more is stored
	askStored  bool // so is that a region was asked for
	answerLate bool // and its answer, behind a load that has found that it was asked for
}

// The words of peerProgram: which of two regions are in the list, by bits; and of each what is known and how often it
// was asked for.
const (
	peerList  = interleave.Word(0)
	peerNow   = interleave.Word(1)
	peerAsked = interleave.Word(3)

	regionAsked, regionKnown = 1, 2
)

func modelFind(t *interleave.T, region interleave.Word, rules peerRules) (known bool) {
	for bit := uint64(1) << region; ; {
		list := t.Load(peerList)
		if list&bit != 0 {
			break
		}
		if rules.listStored {
			t.Store(peerList, list|bit)
			break
		}
		if t.CAS(peerList, list, list|bit) {
			break
		}
	}
	for {
		switch t.Load(peerNow + region) {
		case regionKnown:
			return true
		case regionAsked:
			return false
		}
		if rules.askStored {
			t.Store(peerNow+region, regionAsked)
		} else if !t.CAS(peerNow+region, 0, regionAsked) {
			continue
		}
		t.Check(t.Add(peerAsked+region, 1) == 1, "region %d is asked for twice", region)
		return false
	}
}

func modelAnswered(t *interleave.T, region interleave.Word, rules peerRules) {
	if t.Load(peerList)&(1<<region) == 0 {
		return
	}
	for old := t.Load(peerNow + region); old != 0; old = t.Load(peerNow + region) {
		if rules.answerLate {
			t.Store(peerNow+region, regionKnown)
			return
		}
		if t.CAS(peerNow+region, old, regionKnown) {
			return
		}
	}
}

// peerProgram has two threads that find two regions, one after the other each, and a third that takes in the answer
// about the first. forget: it has that thread alone, and another that forgets the region.
func peerProgram(rules peerRules, forget bool) *interleave.Program {
	find := func(first, second interleave.Word) func(*interleave.T) {
		return func(t *interleave.T) {
			known := modelFind(t, first, rules)
			modelFind(t, second, rules)
			t.Check(modelFind(t, first, rules) || !known, "a key that was known is not")
		}
	}
	answer := interleave.Thread{Name: "peer", Body: func(t *interleave.T) {
		t.Await(func(m interleave.Memory) bool { return m.Load(peerAsked) != 0 })
		modelAnswered(t, 0, rules)
	}}
	p := &interleave.Program{
		Names:   []string{"list", "now0", "now1", "asked0", "asked1"},
		Threads: []interleave.Thread{{Name: "a", Body: find(0, 1)}, {Name: "b", Body: find(1, 0)}, answer},
	}
	want := uint64(regionKnown)
	if forget {
		want = 0
		p.Init = func(w []uint64) { w[peerList], w[peerNow], w[peerAsked] = 1, regionAsked, 1 }
		p.Threads = []interleave.Thread{answer, {Name: "forgets", Body: func(t *interleave.T) { t.Store(peerNow, 0) }}}
	}
	p.Final = func(m interleave.Memory, _ []bool) error {
		if now, list := m.Load(peerNow), m.Load(peerList); now != want || list&1 == 0 || !forget && list != 3 {
			return fmt.Errorf("list %b, the first region is %d", list, now)
		}
		return nil
	}
	return p
}

// TestPeerModel finds regions while the peer answers, in every order of the steps: each is asked for once, and what is
// known stays so until it is forgotten; mutants are found.
func TestPeerModel(t *testing.T) {
	if _, err := interleave.Explore(peerProgram(peerRules{}, true)); err != nil {
		t.Error(err)
	}
	interleave.Check(t, func(rules peerRules) *interleave.Program { return peerProgram(rules, rules.answerLate) },
		map[string]peerRules{
			"the list is stored":     {listStored: true},
			"the question is stored": {askStored: true},
			"the answer is stored":   {answerLate: true},
		})
}

// TestPeerThreads: threads that find regions at once: each region is asked for once, and its key is found by all as
// soon as the one that asked has learnt it.
func TestPeerThreads(t *testing.T) {
	const threads, keys = 4, 512
	var k Peer
	var asked, known [keys]atomic.Int32
	var all sync.WaitGroup
	for thread := range threads {
		all.Go(func() {
			for i := range uint64(keys) {
				key := (i + uint64(thread*keys/threads)) % keys
				for range askAgain / threads / 2 {
					learnt := known[key].Load() != 0
					device, found, ask := k.Find(key)
					if found && device[0] != key+1 || learnt && !found {
						t.Errorf("region %d: found %t, key %d", key, found, device[0])
						return
					}
					if ask {
						asked[key].Add(1)
						k.Learn(key, hw.RemoteKey{key + 1})
						known[key].Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	for key := range asked {
		if n := asked[key].Load(); n != 1 {
			t.Fatalf("region %d is asked for %d times", key, n)
		}
	}
}

// TestPeerFound: a key that is known is found without an allocation.
func TestPeerFound(t *testing.T) {
	var k Peer
	for key := range uint64(100) {
		k.Find(key)
		k.Learn(key, hw.RemoteKey{key + 1})
	}
	if n := testing.AllocsPerRun(100, func() {
		if d, known, _ := k.Find(70); !known || d[0] != 71 {
			t.Fatal("it is not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
