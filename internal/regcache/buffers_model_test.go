package regcache

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/internal/interleave"
)

// userRules are mutants.
type userRules struct {
	added   bool // a Get adds a user to an entry that it has read to have some
	swapped bool // an eviction takes the table's use off an entry that it has read to have no other
	kept    bool // a Drop leaves the table's use
}

// The words of the model: the entry that the table has (1: there is one), its users, which begin with the table, and
// how often its registration was closed.
const (
	modelTable = interleave.Word(iota)
	modelUsers
	modelClosed
)

func modelPut(t *interleave.T) {
	if t.Add(modelUsers, ^uint64(0)) == 0 {
		t.Check(t.Add(modelClosed, 1) == 1, "the registration is closed twice")
	}
}

// modelGet is a Get of the entry, and a Put.
func modelGet(rules userRules) func(*interleave.T) {
	return func(t *interleave.T) {
		if t.Load(modelTable) == 0 {
			return
		}
		for n := t.Load(modelUsers); n != 0; n = t.Load(modelUsers) {
			if rules.added {
				t.Add(modelUsers, 1)
			} else if !t.CAS(modelUsers, n, n+1) {
				continue
			}
			t.Check(t.Load(modelClosed) == 0, "a registration that is closed is used")
			modelPut(t)
			return
		}
	}
}

// modelMake is the thread that has the lock: it evicts the entry if it can, or else drops it.
func modelMake(rules userRules) func(*interleave.T) {
	return func(t *interleave.T) {
		if t.Load(modelUsers) == 1 {
			gone := true
			if rules.swapped {
				t.Swap(modelUsers, 0)
			} else {
				gone = t.CAS(modelUsers, 1, 0)
			}
			if gone {
				t.StoreSC(modelTable, 0)
				t.Check(t.Add(modelClosed, 1) == 1, "the registration is closed twice")
				return
			}
		}
		if t.StoreSC(modelTable, 0); !rules.kept {
			modelPut(t)
		}
	}
}

func userProgram(rules userRules) *interleave.Program {
	return &interleave.Program{
		Names: []string{"table", "users", "closed"},
		Init:  func(words []uint64) { words[modelTable], words[modelUsers] = 1, 1 },
		Threads: []interleave.Thread{
			{Name: "one", Body: modelGet(rules)}, {Name: "two", Body: modelGet(rules)},
			{Name: "maker", Body: modelMake(rules)},
		},
		Final: func(m interleave.Memory, _ []bool) error {
			if n := m.Load(modelClosed); n != 1 {
				return fmt.Errorf("a registration that no thread finds is closed %d times", n)
			}
			return nil
		},
	}
}

// TestModelBufferUsers has two threads use an entry, and another evict or drop it, in every order of the steps: it is
// closed once, behind its last use; mutants are found.
func TestModelBufferUsers(t *testing.T) {
	interleave.Check(t, userProgram, map[string]userRules{
		"a use is added":       {added: true},
		"an eviction swaps":    {swapped: true},
		"a drop is incomplete": {kept: true},
	})
}
