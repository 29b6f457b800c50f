package deferred

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// numbered is a series that is pumped once.
type numbered struct {
	thread, n int
	pump      func(*numbered)
}

func (s *numbered) Pump() bool {
	s.pump(s)
	return true
}

// TestSeriesThreads enters series from several threads at once: each is pumped once, those of one thread in order, and
// none waits when all threads have ended.
func TestSeriesThreads(t *testing.T) {
	const threads, each = 4, 2000
	var q Queue
	var pumped [threads]int // of the thread that runs the queue
	var pumping atomic.Int32
	b := newBacklog()
	pump := func(s *numbered) {
		if pumping.Add(1) != 1 {
			t.Error("two threads pump")
		}
		if pumped[s.thread] != s.n {
			t.Errorf("thread %d: series %d, want %d", s.thread, s.n, pumped[s.thread])
		}
		pumped[s.thread]++
		pumping.Add(-1)
	}
	var all sync.WaitGroup
	for thread := range threads {
		all.Go(func() {
			for n := range each {
				q.AddSeries(&numbered{thread, n, pump}, b)
				q.PostReady()
				if n%64 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	all.Wait()
	if pumped != [threads]int{each, each, each, each} || q.Ready() || !b.Empty() {
		t.Errorf("pumped %v; ready %v, backlog empty %v", pumped, q.Ready(), b.Empty())
	}
}

// TestSeriesWaitsForNothing: a series is entered, and posted, while another thread has the locks of the queue, or is at
// a Pump.
func TestSeriesWaitsForNothing(t *testing.T) {
	var q Queue
	b, room := newBacklog(), 9
	post := func(what string) {
		t.Helper()
		done := make(chan bool)
		go func() {
			q.AddSeries(&steps{1, &room}, b)
			q.PostReady()
			done <- true
		}()
		waitFor(t, done, what)
	}
	q.mu.Lock()
	post("a thread that changes the operations")
	q.mu.Unlock()
	q.runMu.Lock()
	post("a thread that posts")
	q.runMu.Unlock()
	if q.PostReady(); room != 7 || q.Ready() || !b.Empty() {
		t.Errorf("room %d, ready %v, backlog empty %v", room, q.Ready(), b.Empty())
	}
}

// TestSeriesLeft: what a thread leaves to one that drops or takes back operations is posted when that has done so.
func TestSeriesLeft(t *testing.T) {
	for what, gives := range map[string]func(q *Queue){
		"DropSeries": func(q *Queue) { q.DropSeries(func(Series) bool { return q.Len() < 0 }) },
		"Withdraw":   func(q *Queue) { q.Withdraw(func(*Op) bool { return false }) },
		"Leave":      func(q *Queue) { q.Leave(q) },
	} {
		var q Queue
		b, full, room := newBacklog(), 0, 1
		q.AddSeries(&steps{1, &full}, b)
		q.PostReady()
		done := make(chan bool)
		q.mu.Lock()
		go func() {
			gives(&q)
			done <- true
		}()
		for q.runMu.TryLock() { // until the other thread has it, and waits for mu
			q.runMu.Unlock()
			runtime.Gosched()
		}
		q.AddSeries(&steps{1, &room}, b)
		q.PostReady()
		q.mu.Unlock()
		if waitFor(t, done, what); room != 0 {
			t.Errorf("%s leaves what another thread has left", what)
		}
	}
}

// waitFor fails the test if what a goroutine says at its end does not come.
func waitFor(t *testing.T, done chan bool, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("waits for %s", what)
	}
}
