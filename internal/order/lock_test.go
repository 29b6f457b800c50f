package order

import (
	"runtime"
	"sync"
	"testing"
)

// TestLock: threads that take the lock, or try it until they have it, count without losing any; one that is taken is
// had by no other.
func TestLock(t *testing.T) {
	const threads, count = 3, 500
	var l Lock
	var all sync.WaitGroup
	n := 0
	for k := range threads {
		all.Go(func() {
			for done := 0; done < count; {
				if k%3 == 0 {
					l.Take()
				} else if k%3 == 1 && !l.Try() || k%3 == 2 && !l.Grab() {
					runtime.Gosched()
					continue
				}
				n++
				done++
				l.Give()
			}
		})
	}
	all.Wait()
	if n != threads*count {
		t.Errorf("%d of %d", n, threads*count)
	}
	l.Take()
	if l.Try() || l.Grab() {
		t.Error("a lock is taken twice")
	}
	l.Give()
	if !l.Try() {
		t.Error("a lock that was given back is not taken")
	}
}
