package keys

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

type region struct{ key uint64 }

// TestAgainstMap compares random changes of a table with a map. Keys collide, and more are removed than the table has
// slots.
func TestAgainstMap(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var table Table[region]
		model := map[uint64]*Entry[region]{}
		if table.Find(0) != nil || len(table.All()) != 0 {
			t.Fatal("an empty table has keys")
		}
		table.Remove(&Entry[region]{})
		for range 3000 {
			key := uint64(r.IntN(60)) << (8 * r.IntN(6))
			switch k := model[key]; {
			case k == nil:
				k = &Entry[region]{key, &region{key}}
				model[key] = k
				table.Add(k)
			case r.IntN(2) == 0:
				delete(model, key)
				table.Remove(k)
				table.Remove(k)
			}
			probe := uint64(r.IntN(60)) << (8 * r.IntN(6))
			want := (*region)(nil)
			if k := model[probe]; k != nil {
				want = k.Region
			}
			if got := table.Find(probe); got != want {
				t.Fatalf("seed %d: key %#x is %v, want %v", seed, probe, got, want)
			}
		}
		all := table.All()
		for _, k := range all {
			if model[k.Key] != k {
				t.Errorf("seed %d: key %#x is left", seed, k.Key)
			}
		}
		if len(all) != len(model) {
			t.Errorf("seed %d: %d keys, want %d", seed, len(all), len(model))
		}
	}
}

// TestFindWhileChanged has threads find a key while others are entered and removed, and the table grows.
func TestFindWhileChanged(t *testing.T) {
	var table Table[region]
	own := &region{7}
	table.Add(&Entry[region]{7, own})
	var over atomic.Bool
	var finders sync.WaitGroup
	for range 2 {
		finders.Go(func() {
			for !over.Load() {
				if table.Find(7) != own {
					t.Error("a key that stays is not found")
					return
				}
			}
		})
	}
	var all []*Entry[region]
	for key := uint64(8); key < 500; key++ {
		k := &Entry[region]{key, &region{key}}
		table.Add(k)
		if all = append(all, k); len(all) > 100 {
			table.Remove(all[0])
			all = all[1:]
		}
	}
	over.Store(true)
	finders.Wait()
}

// TestGate has closing wait for accesses, and none begin after it.
func TestGate(t *testing.T) {
	var g Gate
	var inside atomic.Int32
	var users sync.WaitGroup
	for range 3 {
		users.Go(func() {
			for g.Enter() {
				inside.Add(1)
				inside.Add(-1)
				g.Leave()
			}
		})
	}
	for range 100 {
		if g.Enter() {
			g.Leave()
		}
	}
	g.Shut()
	if n := inside.Load(); n != 0 {
		t.Errorf("%d accesses are under way after the gate was shut", n)
	}
	users.Wait()
	if g.Enter() {
		t.Error("an access begins after the gate was shut")
	}
}
