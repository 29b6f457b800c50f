package cq

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
)

// ticking makes q complete an operation with the second run of its timers; nothing rings for it.
func ticking(t *testing.T, q *Queue) {
	t.Helper()
	runs := 0
	err := q.AddSource(&Source{
		FD: -1, HasWork: func() bool { return false }, Progress: func() {},
		Timers: func() {
			if runs++; runs == 2 {
				q.Complete(entry(1))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTimersOfSleepers: what sleeps runs the timers of its sources, now and then.
func TestTimersOfSleepers(t *testing.T) {
	for _, kind := range kinds {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			t.Parallel()
			q := open(t, fi.CQAttr{WaitObj: kind}, Options{})
			ticking(t, q)
			begin := time.Now()
			if n, err := q.SRead(make([]Entry, 1), 0, 60_000); n != 1 || err != nil {
				t.Fatalf("%d %v", n, err)
			}
			if d := time.Since(begin); d < tickEvery/2 {
				t.Errorf("the timers ran twice within %v", d)
			}
		})
	}
}

// TestTimersOfWaiters: what sleeps on the descriptor is woken for them.
func TestTimersOfWaiters(t *testing.T) {
	q := open(t, fi.CQAttr{WaitObj: fi.WaitFD}, Options{})
	ticking(t, q)
	dst := make([]Entry, 1)
	for end := time.Now().Add(time.Minute); ; {
		if err := q.TryWait(); err == nil && !readable(t, q.wait.FD(), 60_000) {
			t.Fatal("nothing wakes what waits")
		}
		if n, err := q.Read(dst); n == 1 {
			break
		} else if wantErr(t, err, fi.EAGAIN); time.Now().After(end) {
			t.Fatal("the timers have not run twice")
		}
	}
}
