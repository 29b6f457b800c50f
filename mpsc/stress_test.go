package mpsc

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/hot"
)

// produce pushes messages 0..count-1 as owner.
func produce(r *Ring, owner uint32, count uint64, exclusive bool) {
	for n := range count {
		for {
			slot, pos, ok := r.Claim(owner, exclusive)
			if ok {
				fill(body(r, slot), owner, n)
				r.Publish(slot, owner, pos)
				break
			}
			runtime.Gosched()
		}
	}
}

// consume pops total messages from position head on and checks that each
// owner's come complete, once and in order. It returns the new head.
func consume(t *testing.T, r *Ring, head, total uint64) uint64 {
	next := map[uint32]uint64{}
	stop := time.Now().Add(60 * time.Second)
	for end := head + total; head != end; {
		owner, state, lapOK := r.Load(head)
		if state != hot.SlotReady || !lapOK {
			if time.Now().After(stop) {
				t.Fatalf("nothing at position %d: owner %d state %d, tail %d", head, owner, state, r.Tail())
			}
			runtime.Gosched()
			continue
		}
		n, ok := check(body(r, r.Slot(head)), owner)
		if !ok || n != next[owner] {
			t.Fatalf("position %d: owner %d message %d, want %d, whole %v", head, owner, n, next[owner], ok)
		}
		next[owner]++
		r.Release(head)
		head++
	}
	if r.Ready(head) {
		t.Fatal("one message too many")
	}
	return head
}

func stress(t *testing.T, r *Ring, producers int, each uint64) {
	var wg sync.WaitGroup
	for i := range producers {
		wg.Go(func() { produce(r, uint32(i+1), each, producers == 1) })
	}
	consume(t, r, 0, uint64(producers)*each)
	wg.Wait()
}

// TestStress runs on the Go heap: under -race the detector checks that C0↔R0
// and P0↔L0 order the plain accesses to the bodies.
func TestStress(t *testing.T) {
	each := uint64(20000)
	if testing.Short() {
		each = 2000
	}
	for log2 := uint32(0); log2 <= 6; log2++ {
		for _, producers := range []int{1, 2, 8} {
			t.Run(fmt.Sprintf("slots=%d/producers=%d", 1<<log2, producers), func(t *testing.T) {
				stress(t, heapRing(log2, 128), producers, each/uint64(producers))
			})
		}
	}
}
