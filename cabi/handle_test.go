package main

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

func TestHandleIsFoundUntilRemoved(t *testing.T) {
	var tab table
	objects := map[uint64]int{}
	for i := range 3 * chunkSize {
		h, err := tab.add(i)
		if err != nil {
			t.Fatal(err)
		}
		if _, taken := objects[h]; taken || h == 0 {
			t.Fatalf("handle %#x given out twice, or none", h)
		}
		objects[h] = i
	}
	for h, i := range objects {
		if got := tab.get(h); got != i {
			t.Fatalf("get(%#x) = %v, want %d", h, got, i)
		}
		if !tab.remove(h) || tab.remove(h) || tab.get(h) != nil {
			t.Fatalf("remove(%#x) does not remove once", h)
		}
	}
}

func TestStaleHandleIsRefused(t *testing.T) {
	var tab table
	old, _ := tab.add("old")
	tab.remove(old)
	next, _ := tab.add("next")
	if uint32(old) != uint32(next) {
		t.Fatalf("slot of %#x was not used again by %#x: the test shows nothing", old, next)
	}
	if got := tab.get(old); got != nil {
		t.Errorf("stale handle gives %v", got)
	}
	if tab.remove(old) || tab.get(next) != "next" {
		t.Error("a stale handle removes its successor")
	}
}

func TestHandlesThatWereNeverGivenOut(t *testing.T) {
	var tab table
	h, _ := tab.add("one")
	for _, bad := range []uint64{
		0, h + 1, h | 1<<32, 1<<32 - 1, 1<<64 - 1, maxChunks * chunkSize, maxChunks*chunkSize + 1,
	} {
		if got := tab.get(bad); got != nil {
			t.Errorf("get(%#x) = %v", bad, got)
		}
	}
}

func TestHandleTableEnds(t *testing.T) {
	var tab table
	tab.used = maxChunks * chunkSize
	if h, err := tab.add("one more"); fi.ErrnoOf(err) != fi.ENOMEM {
		t.Errorf("add to a full table = %#x, %v", h, err)
	}
}

// Threads look handles up while others open and close: what is found is either
// what the handle was given out for, or nothing.
func TestHandlesConcurrently(t *testing.T) {
	var tab table
	var latest [64]atomic.Uint64
	var changers, readers sync.WaitGroup
	var done atomic.Bool
	for w := range 4 {
		changers.Go(func() {
			for i := range 5000 {
				at := &latest[(w*16+i)%len(latest)]
				h, err := tab.add(new(uint64))
				if err != nil {
					t.Error(err)
					return
				}
				*tab.get(h).(*uint64) = h // before anybody else knows the handle
				if old := at.Swap(h); old != 0 && !tab.remove(old) {
					t.Errorf("handle %#x was gone", old)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for i := 0; !done.Load(); i++ {
				h := latest[i%len(latest)].Load()
				if p, ok := tab.get(h).(*uint64); ok && *p != h {
					t.Errorf("handle %#x found the object of %#x", h, *p)
					return
				}
			}
		})
	}
	changers.Wait()
	done.Store(true)
	readers.Wait()
}

func TestLookupDoesNotAllocate(t *testing.T) {
	var tab table
	h, _ := tab.add(t)
	if n := testing.AllocsPerRun(1000, func() {
		if _, ok := tab.get(h).(*testing.T); !ok {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("a lookup allocates %v times", n)
	}
}
