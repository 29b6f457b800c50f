package threads

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/hot"
)

// TestTake has goroutines take threads: each has its own line, and no two have one at a time.
func TestTake(t *testing.T) {
	var taken sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				th := Take()
				if th == nil || th.self.Line == 0 {
					t.Error("a thread without a line")
					return
				}
				if _, twice := taken.LoadOrStore(th.self.Line, th); twice {
					t.Error("two goroutines have a thread")
				}
				runtime.Gosched()
				taken.Delete(th.self.Line)
				th.Give()
			}
		})
	}
	wg.Wait()
}

// TestDischarge drops threads, whose lines are free again once they are collected.
func TestDischarge(t *testing.T) {
	const n = 100
	kept := make([]*Thread, n)
	for i := range kept {
		kept[i] = Take()
	}
	if lines() < n {
		t.Fatalf("%d lines are taken", lines())
	}
	clear(kept)
	for end := time.Now().Add(10 * time.Second); lines() >= n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d lines are taken still", lines())
		}
		runtime.GC()
	}
}

// lines is how many lines are taken.
func lines() (n int) {
	for i := range hot.EpochReaders {
		n += int(atomic.LoadUint32(&hot.EpochReaderAt(i).Taken))
	}
	return n
}
