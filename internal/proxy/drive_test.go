package proxy

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/cpuset"
)

// TestDrive has the work of engines done without them, but for that of one which
// an application drives and what is left to the engines.
func TestDrive(t *testing.T) {
	mine, left, app := newEngine(t), newEngine(t), newEngine(t)
	app.polled.Store(true)
	var drove, polite, foreign atomic.Int64
	p := startProgress(t, ProgressOptions{Drive: func(engines []Engine, idle, most time.Duration) (worked bool) {
		if idle < 0 || idle > testPolicy.Spin || most <= 0 || most > 10*time.Millisecond {
			t.Errorf("waits for %v, for at most %v", idle, most)
		}
		if idle != 0 {
			polite.Add(1)
		}
		for _, e := range engines {
			e := e.(*fakeEngine)
			e.use()
			if e == app {
				foreign.Add(1)
			}
			if e == mine {
				n := e.work.Swap(0)
				drove.Add(n)
				worked = n != 0
			}
		}
		return worked
	}})
	for _, e := range []*fakeEngine{mine, left, app} {
		if err := p.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the application drives its engine", func() bool { return p.Stats().Watches > 0 })
	before := foreign.Load()
	const pieces = 1000
	mine.give(pieces)
	left.give(pieces)
	eventually(t, "the work is done", func() bool {
		return drove.Load()+mine.done.Load() == pieces &&
			left.done.Load() == pieces
	})
	if n, own := drove.Load(), mine.done.Load(); n+own != pieces || n == 0 {
		t.Errorf("of %d pieces %d were done without the engine, %d by it", pieces, n, own)
	}
	if n := foreign.Load(); n != before {
		t.Errorf("drove the application's engine %d times", n-before)
	}
	if polite.Load() == 0 {
		t.Error("never searched for more")
	}
	p.Remove(mine)
	mine.removed.Store(true) // from here on its use is an error
	left.give(pieces)
	eventually(t, "the rest is done", func() bool { return left.done.Load() == 2*pieces })
	app.polled.Store(false)
	eventually(t, "the thread has the engine back", func() bool { return foreign.Load() != before })
}

// TestAlone starts threads on one processor, by something that has the same or
// all: only where both share it may they not spin.
func TestAlone(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := cpuset.OfThread()
	if err != nil {
		t.Fatal(err)
	}
	if own.Count() == 1 {
		t.Skip("needs two processors")
	}
	one := own.Nth(0)
	alone := func() bool {
		return startProgress(t, ProgressOptions{Place: Placement{CPUs: one}}).alone
	}
	if alone() {
		t.Error("a thread with a processor to itself does not spin")
	}
	if err := one.Bind(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := own.Bind(); err != nil {
			t.Error(err)
		}
	}()
	if !alone() {
		t.Errorf("thread %d spins on the processor that it shares with what started it", unix.Gettid())
	}
}
