package cq

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

func triggerCounter(t *testing.T) *Counter {
	t.Helper()
	c, err := OpenCounter(&fi.CntrAttr{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestTriggerOrder arms triggers in random order and crosses their thresholds
// in steps of random width.
func TestTriggerOrder(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := triggerCounter(t)
		var fired, want []int
		thresholds := make([]int, 1+r.IntN(60))
		for i := range thresholds {
			thresholds[i] = r.IntN(30)
			g := &Trigger{Threshold: uint64(thresholds[i]), Total: r.IntN(2) == 0}
			g.Fire = func() { fired = append(fired, i) }
			c.Arm(g)
			if thresholds[i] == 0 {
				want = append(want, i) // the counter is there already
			}
		}
		var rest []int
		for i := range thresholds {
			if thresholds[i] != 0 {
				rest = append(rest, i)
			}
		}
		slices.SortStableFunc(rest, func(a, b int) int { return thresholds[a] - thresholds[b] })
		for value := 0; value < 30; {
			n := 1 + r.IntN(10)
			c.Count(uint64(n))
			value += n
		}
		if want = append(want, rest...); !slices.Equal(fired, want) {
			t.Fatalf("seed %d: fired %v, want %v", seed, fired, want)
		}
		if f := atomic.LoadUint32(&c.Hot().Flags); f&hot.CntrTriggers != 0 {
			t.Fatalf("seed %d: the counter says that it has triggers: flags %#x", seed, f)
		}
	}
}

// TestTriggerErrors: errors count for triggers that ask for it only.
func TestTriggerErrors(t *testing.T) {
	c := triggerCounter(t)
	var value, total bool
	c.Arm(&Trigger{Threshold: 2, Fire: func() { value = true }})
	c.Arm(&Trigger{Threshold: 2, Total: true, Fire: func() { total = true }})
	c.Count(1)
	c.CountError(1)
	if value || !total {
		t.Fatalf("at 1 and 1 error: value %v, total %v", value, total)
	}
	c.SetErr(0)
	c.Set(7)
	if !value {
		t.Fatal("a value that was set did not fire")
	}
}

// TestDisarm: what is disarmed does not fire, what has fired is not disarmed.
func TestDisarm(t *testing.T) {
	c := triggerCounter(t)
	fired := 0
	list := make([]*Trigger, 100)
	for i := range list {
		list[i] = &Trigger{Threshold: uint64(i + 1), Fire: func() { fired++ }}
		c.Arm(list[i])
	}
	for i := 0; i < 100; i += 2 {
		if !c.Disarm(list[i]) || c.Disarm(list[i]) {
			t.Fatalf("trigger %d was not armed once", i)
		}
	}
	c.Count(50)
	if fired != 25 || c.Disarm(list[1]) {
		t.Fatalf("%d fired, want 25; or one that fired was disarmed", fired)
	}
	c.Count(50)
	if fired != 50 {
		t.Fatalf("%d fired, want 50", fired)
	}
}

// TestTriggersOfManyThreads counts in some threads and arms in others: each
// trigger fires once.
func TestTriggersOfManyThreads(t *testing.T) {
	const threads, each = 4, 2000
	c := triggerCounter(t)
	var fired [threads * each]atomic.Int32
	var wg sync.WaitGroup
	for n := range threads {
		wg.Go(func() {
			for range each {
				c.Count(1)
			}
		})
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 2))
			for i := range each {
				f := &fired[n*each+i]
				g := &Trigger{Threshold: r.Uint64N(threads*each + 1), Fire: func() { f.Add(1) }}
				c.Arm(g)
				if r.IntN(8) == 0 && c.Disarm(g) {
					f.Add(1)
				}
			}
		})
	}
	wg.Wait()
	for i := range fired {
		if n := fired[i].Load(); n != 1 {
			t.Fatalf("trigger %d fired or was disarmed %d times", i, n)
		}
	}
}
