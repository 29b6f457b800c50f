package main

import "testing"

// TestTallyMissing: programs that are enough are to have had a claim, a discard where a side of weft's can, and a
// cancel.
func TestTallyMissing(t *testing.T) {
	both, theirs := []string{"peer cxi", "peer weft"}, []string{"peer cxi", "peer cxi"}
	for _, c := range []struct {
		t        tally
		programs uint64
		commands []string
		missing  bool
	}{
		{tally{claimed: 1, discarded: 1, canceled: 1}, tallySeeds, both, false},
		{tally{discarded: 1, canceled: 1}, tallySeeds, both, true},
		{tally{claimed: 1, dropped: 1, canceled: 1}, tallySeeds, both, true},
		{tally{claimed: 1, canceled: 1}, tallySeeds, theirs, false},
		{tally{claimed: 1, discarded: 1}, tallySeeds, both, true},
		{tally{}, tallySeeds - 1, both, false},
	} {
		if err := c.t.missing(c.programs, c.commands); (err != nil) != c.missing {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
