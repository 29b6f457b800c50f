package list

import (
	"sync"
	"testing"
)

// TestTally counts from several threads, of which the first makes the numbers.
func TestTally(t *testing.T) {
	for range 100 {
		var counted Tally
		if all, ok := counted.Moved(); ok || all != [Ways]Moved{} {
			t.Fatalf("%+v before anything is counted", all)
		}
		var threads sync.WaitGroup
		for w := range Ways {
			for range 2 {
				threads.Go(func() {
					for range 10 {
						counted.Count(w, uint64(w)+1, 100)
					}
				})
			}
		}
		threads.Wait()
		want := [Ways]Moved{{20, 2000}, {40, 2000}, {60, 2000}}
		if all, ok := counted.Moved(); !ok || all != want {
			t.Fatalf("%+v, want %+v", all, want)
		}
	}
}
