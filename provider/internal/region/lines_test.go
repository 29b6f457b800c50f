package region

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestAgainstMap compares random changes of a table with a map. Keys collide, more are removed than the table has
// lines, and the data plane finds the same as the runtime, with the address of the region that has the key last.
func TestAgainstMap(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var table Table[owner]
		model := map[uint64]*Region[owner]{}
		if table.Find(0) != nil || len(table.All()) != 0 {
			t.Fatal("an empty table has keys")
		}
		table.Remove(&Region[owner]{})
		word := table.Word()
		for n := range uint64(3000) {
			key := uint64(r.IntN(60)) << (8 * r.IntN(6))
			switch m := model[key]; {
			case m == nil:
				m = made(t, attr(fi.RemoteRead, n+1), 0, Options{})
				model[key] = m
				if _, err := table.Add(m, key, false); err != nil {
					t.Fatalf("seed %d: key %#x: %v", seed, key, err)
				}
			case r.IntN(2) == 0:
				delete(model, key)
				table.Remove(m)
				table.Remove(m)
			}
			probe := uint64(r.IntN(60)) << (8 * r.IntN(6))
			want := model[probe]
			if got := table.Find(probe); got != want {
				t.Fatalf("seed %d: key %#x is %v, want %v", seed, probe, got, want)
			}
			line := dataplane.FindRegion(word, probe)
			if (line == nil) != (want == nil) || line != nil && line.Len != want.Length {
				t.Fatalf("seed %d: the data plane finds %+v for key %#x, want %v", seed, line, probe, want)
			}
		}
		all := table.All()
		if len(all) != len(model) {
			t.Errorf("seed %d: %d keys, want %d", seed, len(all), len(model))
		}
		if lines := table.lines.Load(); len(lines.regions) > 1024 {
			t.Errorf("seed %d: %d lines for %d keys", seed, len(lines.regions), len(all))
		}
	}
}

// TestFindWhileChanged has threads find a key, as the runtime and as the data plane, while others are entered and
// removed, and the table grows.
func TestFindWhileChanged(t *testing.T) {
	var table Table[owner]
	own := added(t, &table, 7, fi.RemoteRead)
	word := table.Word()
	var over atomic.Bool
	var finders sync.WaitGroup
	for i := range 2 {
		finders.Go(func() {
			epoch := hot.EpochReaderAt(hot.EpochReaders - 1 - i)
			for !over.Load() {
				if table.Find(7) != own {
					t.Error("a key that stays is not found")
					return
				}
				atomic.AddUint64(&epoch.Posting, 1)
				if _, _, refusal := dataplane.Admit(word, 7, own.Base, own.Length, hot.KeyRead); refusal != fi.Success {
					t.Errorf("the data plane does not find it: %v", refusal)
				}
				atomic.AddUint64(&epoch.Posting, 1)
				runtime.Gosched()
			}
		})
	}
	var all []*Region[owner]
	for key := uint64(8); key < 500; key++ {
		if all = append(all, added(t, &table, key, fi.RemoteRead)); len(all) > 100 {
			table.Remove(all[0])
			all = all[1:]
		}
	}
	over.Store(true)
	finders.Wait()
}

// TestDirect: the data plane accesses a region by its keys as long as it is to, and finds it as well when the table has
// grown.
func TestDirect(t *testing.T) {
	var table Table[owner]
	r := added(t, &table, 7, fi.RemoteRead|fi.RemoteWrite)
	alias, _, err := table.Alias(r)
	if err != nil {
		t.Fatal(err)
	}
	word := table.Word()
	admitted := func(key uint64) bool {
		line, at, refusal := dataplane.Admit(word, key, r.Base+1, 9, hot.KeyRead|hot.KeyDirect)
		switch {
		case line == nil || refusal == fi.Success && at != r.Memory.Parts[0].Base+1:
			t.Fatalf("key %#x: %+v, at %#x", key, line, at)
		case refusal != fi.Success && refusal != fi.EACCES:
			t.Fatalf("key %#x: %v", key, refusal)
		}
		return refusal == fi.Success
	}
	if admitted(7) || admitted(alias) {
		t.Error("before it may")
	}
	table.openDirect(7, r)
	if !admitted(7) || admitted(alias) {
		t.Error("not by the key that is opened, or by another")
	}
	table.openDirect(alias, r)
	for key := range uint64(500) {
		added(t, &table, 1000+key, fi.RemoteRead)
	}
	if !admitted(7) || !admitted(alias) {
		t.Error("not by both keys when the table has grown")
	}
	if table.closeDirect(r); admitted(7) || admitted(alias) {
		t.Error("when it may not any more")
	}
	if _, _, err := table.Access(alias, r.Base, 1, fi.RemoteRead); err != nil {
		t.Errorf("the runtime: %v", err)
	}
	r.Gate.Leave()
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
