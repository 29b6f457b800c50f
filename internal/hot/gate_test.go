package hot

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestGate: what a thread does inside the gate, and sharers do under a lock, is never at once, and none is lost.
func TestGate(t *testing.T) {
	const sharers, shares = 2, 100
	g := new(Gate)
	word := g.Word()
	var mu sync.Mutex // what threads take that are not alone
	var over atomic.Bool
	var sharing, owner sync.WaitGroup
	n, alone, beside := 0, 0, 0 // n by all, alone and beside by the owner of the gate
	owner.Go(func() {
		for k := 0; !over.Load(); k++ {
			if k%64 == 0 {
				runtime.Gosched()
			}
			if g.Enter() {
				if !word.Alone() {
					t.Error("a thread inside is not alone")
				}
				alone++
				n++
				g.Leave()
				continue
			}
			mu.Lock()
			beside++
			n++
			mu.Unlock()
		}
	})
	for range sharers {
		sharing.Go(func() {
			for range shares {
				g.Share()
				if word.Alone() {
					t.Error("a thread is alone beside a sharer")
				}
				mu.Lock()
				n++
				mu.Unlock()
				g.Unshare()
				time.Sleep(50 * time.Microsecond)
			}
		})
	}
	sharing.Wait()
	over.Store(true)
	owner.Wait()
	if want := sharers*shares + alone + beside; n != want || alone == 0 {
		t.Errorf("counted %d, not %d; %d of them alone, %d under the lock", n, want, alone, beside)
	}
	if g.Inside != GateOut || g.Sharers != 0 {
		t.Errorf("%d is inside, %d share", g.Inside, g.Sharers)
	}
}

// TestNoGate: without a gate nothing is alone, and sharing it is nothing.
func TestNoGate(t *testing.T) {
	var g *Gate
	g.Share()
	if g.Enter() || g.Word().Alone() {
		t.Error("a thread is alone without a gate")
	}
	g.Unshare()
}
