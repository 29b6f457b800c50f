package tables

import (
	"testing"

	"github.com/weft-fabric/weft/internal/interleave"
)

// sendersRules are mutants of Senders.
type sendersRules struct {
	flagFirst     bool // strangers is set before the line is written
	comparesFirst bool // the directory is compared before the line is written
	unlocked      bool // DropStrangers takes no lock
}

// sendersProgram is a holder of the progress lease that fills the line of a stranger, beside threads that change the
// directory. A stranger that the holder reads was found after each change that had ended then.
func sendersProgram(rules sendersRules) *interleave.Program {
	const generation, line, strangers, dropping, ended = interleave.Word(0), interleave.Word(1), interleave.Word(2),
		interleave.Word(3), interleave.Word(4) // ended: a word for each thread that changes the directory
	const changers, fills = 2, 2
	changer := func(i interleave.Word) func(*interleave.T) {
		return func(t *interleave.T) {
			g := t.Add(generation, 1)
			for !rules.unlocked && !t.CAS(dropping, 0, 1) {
				t.Pause()
				t.At(g)
			}
			if t.Swap(strangers, 0) == 1 {
				t.CAS(line, 1, 0)
			}
			if !rules.unlocked {
				t.StoreSC(dropping, 0)
			}
			t.StoreSC(ended+i, g)
		}
	}
	holder := func(t *interleave.T) {
		for range fills {
			found := t.Load(generation)
			if rules.flagFirst {
				t.StoreSC(strangers, 1)
			}
			unchanged := rules.comparesFirst && t.Load(generation) == found
			t.StoreSC(line, 1)
			if !rules.flagFirst {
				t.StoreSC(strangers, 1)
			}
			if !unchanged && t.Load(generation) != found {
				t.StoreSC(line, 0)
			}
			for i := range interleave.Word(changers) {
				e := t.Load(ended + i)
				t.Check(t.Load(line) == 0 || found >= e, "a stranger found at %d, and change %d has ended", found, e)
			}
		}
	}
	return &interleave.Program{
		Names: []string{"generation", "line", "strangers", "dropping", "ended0", "ended1"}, TSO: true,
		Threads: []interleave.Thread{{Name: "holder", Body: holder}, {Name: "first", Body: changer(0)},
			{Name: "second", Body: changer(1)}},
	}
}

func TestSendersModel(t *testing.T) {
	interleave.Check(t, sendersProgram, map[string]sendersRules{
		"strangers set before the line": {flagFirst: true},
		"compared before the line":      {comparesFirst: true},
		"dropped without the lock":      {unlocked: true},
	})
}
