package provider

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/race"
	"github.com/weft-fabric/weft/provider/names"
)

func TestAVLookupsDoNotAllocate(t *testing.T) {
	a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{})
	var list []names.Name
	for i := range 200 {
		list = append(list, testName(i))
	}
	addrs := insertAll(t, a, list...)
	absent := testName(1000)
	sum := uint64(0)
	if n := testing.AllocsPerRun(100, func() {
		for i, n := range list {
			got, _ := a.Name(addrs[i])
			if got != n || a.Find(n) != addrs[i] {
				t.Error("wrong answer")
			}
		}
		if a.Find(absent) != fi.AddrNotAvail {
			t.Error("found what is not there")
		}
		sum += a.Generation()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestAVManyInserts: an insertion does not search the table, which would take many seconds here
// where 0.1 s is enough. The processor time does not depend on what else has the processor.
func TestAVManyInserts(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := openTestDomain(t, testInfo())
	const count = 100_000
	var raw []byte
	for i := range count {
		raw = testName(i).AppendSockaddr(raw)
	}
	a := openTestAV(t, d, fi.AVAttr{})
	begin := threadTime(t)
	if n, err := a.Insert(raw, count, &Insertion{}); err != nil || n != count {
		t.Fatalf("inserted %d: %v", n, err)
	}
	took := threadTime(t) - begin
	t.Logf("%d inserts in %v of processor time", count, took)
	if took > 2*time.Second && !race.Enabled {
		t.Errorf("too slow")
	}
	for i := range count {
		if got := a.Find(testName(i)); got != fi.Addr(i) {
			t.Fatalf("name %d found at %d", i, got)
		}
	}
}

// Readers and writers of one address vector at once: what is found is right,
// and what a subscriber is notified of is gone.
func TestAVConcurrent(t *testing.T) {
	a := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{})
	fixed := insertAll(t, a, testName(0))[0]
	var notified atomic.Uint64
	defer a.Subscribe(func(fi.Addr) { notified.Add(1) })()
	var stop atomic.Bool
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			rng := rand.New(rand.NewPCG(5, 6))
			for !stop.Load() {
				if a.Find(testName(0)) != fixed {
					t.Error("a name that is always there is not found")
					return
				}
				// What is found under one generation holds under it.
				g := a.Generation()
				n := testName(1 + rng.IntN(50))
				at := a.Find(n)
				if at == fi.AddrNotAvail {
					continue
				}
				if got, ok := a.Name(at); (!ok || got != n) && a.Generation() == g && stable(a, g) {
					t.Errorf("found %v at %d, which is %v %v", n, at, got, ok)
					return
				}
			}
		})
	}
	var removed atomic.Uint64
	steps := 3000
	for w := range 2 {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 7))
			var mine []fi.Addr
			for range steps {
				if len(mine) < 20 && rng.IntN(2) == 0 {
					in := Insertion{Addrs: make([]fi.Addr, 1)}
					if n, err := a.Insert(rawNames(testName(1+rng.IntN(50))), 1, &in); n != 1 || err != nil {
						t.Errorf("insert: %d %v", n, err)
						return
					}
					mine = append(mine, in.Addrs[0])
				} else if len(mine) > 0 {
					i := rng.IntN(len(mine))
					if err := a.Remove(mine[i:i+1], 0); err != nil {
						t.Errorf("remove: %v", err)
						return
					}
					mine = slices.Delete(mine, i, i+1)
					removed.Add(1)
				}
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()
	if notified.Load() != removed.Load() {
		t.Errorf("notified of %d removals of %d", notified.Load(), removed.Load())
	}
}

// stable reports whether no change is under way: then generation g is complete.
func stable(a *AV, g uint64) bool {
	a.Subscribe(func(fi.Addr) {})() // takes the lock of changes
	return a.Generation() == g
}

func BenchmarkAVName(b *testing.B) {
	a := openTestAV(b, openTestDomain(b, testInfo()), fi.AVAttr{})
	at := insertAll(b, a, testName(1))[0]
	for b.Loop() {
		if _, ok := a.Name(at); !ok {
			b.Fatal("gone")
		}
	}
}

func BenchmarkAVFind(b *testing.B) {
	a := openTestAV(b, openTestDomain(b, testInfo()), fi.AVAttr{})
	for i := range 1000 {
		insertAll(b, a, testName(i))
	}
	n := testName(500)
	for b.Loop() {
		if a.Find(n) == fi.AddrNotAvail {
			b.Fatal("gone")
		}
	}
}
