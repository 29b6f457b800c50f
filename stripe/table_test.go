package stripe

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/hot"
)

type request struct{ owner uint64 }

func newTable(t *testing.T, n, per int) *Table[request] {
	t.Helper()
	tab, err := NewTable[request](n, per)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tab.Close() })
	return tab
}

func TestAllocGivesEveryRequestOnce(t *testing.T) {
	tab := newTable(t, 2, 5)
	seen := map[*request]bool{}
	for stripe := range 2 {
		for range 5 {
			r, id, ok := tab.Alloc(stripe)
			if !ok || seen[r] {
				t.Fatalf("stripe %d: %v, given before: %v", stripe, ok, seen[r])
			}
			seen[r] = true
			if got, ok := tab.Lookup(id); !ok || got != r {
				t.Fatalf("id %#x: looks up %p, want %p", id, got, r)
			}
		}
		if _, _, ok := tab.Alloc(stripe); ok {
			t.Fatalf("stripe %d: more requests than it has", stripe)
		}
	}
}

func TestStaleAndForgedIDsAreRefused(t *testing.T) {
	tab := newTable(t, 2, 4)
	_, id, _ := tab.Alloc(1)
	if !tab.Free(id) {
		t.Fatal("first free refused")
	}
	if tab.Free(id) {
		t.Error("second free accepted")
	}
	_, again, _ := tab.Alloc(1)
	if again == id {
		t.Error("the same id twice")
	}
	for range 100000 {
		forged := rand.Uint64()
		if forged == again {
			continue
		}
		if _, ok := tab.Lookup(forged); ok {
			t.Fatalf("forged id %#x accepted", forged)
		}
	}
	for _, forged := range []uint64{0, id, again &^ (1<<genShift - 1), again | 1<<63, again ^ 1<<stripeShift} {
		if _, ok := tab.Lookup(forged); ok {
			t.Errorf("forged id %#x accepted", forged)
		}
	}
}

func TestRangeSeesWhatIsInUse(t *testing.T) {
	tab := newTable(t, 3, 3)
	want := map[uint64]bool{}
	for s := range 3 {
		_, a, _ := tab.Alloc(s)
		_, b, _ := tab.Alloc(s)
		tab.Free(a)
		want[b] = true
	}
	tab.Range(func(id uint64, _ *request) {
		if !want[id] {
			t.Errorf("id %#x is not in use", id)
		}
		delete(want, id)
		tab.Free(id)
	})
	if len(want) != 0 {
		t.Errorf("missed %v", want)
	}
}

// TestSharedFree has one thread allocate under the lease while others free:
// no request may be given to two owners. Run it with -race.
func TestSharedFree(t *testing.T) {
	const rounds = 200000
	tab := newTable(t, 1, 16)
	ids := make(chan uint64, 16)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for id := range ids {
				r, ok := tab.Lookup(id)
				if !ok || r.owner != id {
					t.Errorf("id %#x: in use %v, owner %#x", id, ok, r.owner)
				}
				r.owner = 0
				if !tab.Free(id) {
					t.Errorf("id %#x: free refused", id)
				}
			}
		})
	}
	for n := 0; n < rounds; {
		r, id, ok := tab.Alloc(0)
		if !ok {
			runtime.Gosched() // all are with those that free, which may need this core
			continue
		}
		r.owner = id
		ids <- id
		n++
	}
	close(ids)
	wg.Wait()
}

func TestLeaseIsExclusive(t *testing.T) {
	const threads, rounds = 8, 50000
	set := NewSet(make([]hot.Stripe, 4), false)
	var inside [4]int // plain: the race detector sees two holders
	var wg sync.WaitGroup
	for hint := range threads {
		wg.Go(func() {
			for range rounds {
				i, ok := set.Acquire(hint)
				if !ok {
					continue
				}
				inside[i]++
				if inside[i] != 1 {
					t.Errorf("stripe %d has %d holders", i, inside[i])
				}
				inside[i]--
				set.Release(i)
			}
		})
	}
	wg.Wait()
}

func TestAcquireTriesTheNext(t *testing.T) {
	set := NewSet(make([]hot.Stripe, 2), false)
	a, _ := set.Acquire(1)
	b, ok := set.Acquire(1)
	if a != 1 || b != 0 || !ok {
		t.Errorf("got %d and %d, %v", a, b, ok)
	}
	if _, ok := set.Acquire(0); ok {
		t.Error("a third lease of two stripes")
	}
	set.Release(0)
	if i, ok := set.Acquire(1); !ok || i != 0 {
		t.Errorf("after release: %d, %v", i, ok)
	}
}

func TestAllocDoesNotAllocate(t *testing.T) {
	tab := newTable(t, 1, 4)
	set := NewSet(make([]hot.Stripe, 2), false)
	if n := testing.AllocsPerRun(100, func() {
		i, _ := set.Acquire(0)
		_, id, _ := tab.Alloc(0)
		tab.Free(id)
		set.Release(i)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
