package proxy

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func monotonic(t *testing.T) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// TestTransitionsAreEvents has a thread work and rest three times, and asks a
// service for it.
func TestTransitionsAreEvents(t *testing.T) {
	counted := map[Transition]int{} // the thread's, until it has ended
	p := startProgress(t, ProgressOptions{Name: "weft-eventful", Note: func(tr Transition) { counted[tr]++ }})
	e := newEngine(t)
	began := monotonic(t)
	if err := p.Add(e); err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); n <= 3; n++ {
		e.give(5)
		eventually(t, "work done, and idle again", func() bool {
			return p.Stats().Idlings == n &&
				p.Stats().Sleeps > 0
		})
	}
	c := dialTest(t, startService(t, nil).Address())
	list, err := c.Events()
	if err != nil {
		t.Fatal(err)
	}
	last, seen := began, 0
	for _, ev := range list {
		if ev.Thread != "weft-eventful" {
			continue
		}
		if ev.TID != p.tid.Load() || ev.Active != (seen%2 == 0) || ev.Time < last || ev.Time > monotonic(t) {
			t.Errorf("event %d: %+v after %v", seen, ev, last)
		}
		last = ev.Time
		seen++
	}
	if s := p.Stats(); seen != 6 || s.Activations != 3 {
		t.Errorf("%d events of %+v", seen, s)
	}
	if s := State(); !strings.Contains(s, "weft-eventful: idle for ") {
		t.Errorf("state %q", s)
	}
	if err := p.Abort(); err != nil { // it says after it has counted
		t.Fatal(err)
	}
	if counted[Activated] != 3 || counted[Idled] != 3 || counted[Slept] == 0 {
		t.Errorf("notified of %v", counted)
	}
}

// TestTransitionsAreBounded reads while a thread writes more of them than are
// kept: what is read is in order and without a gap.
func TestTransitionsAreBounded(t *testing.T) {
	var r transitions
	r.start()
	r.origin = 0
	const all = 20 * keptTransitions
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := range all {
			r.add(r.began.Add(time.Duration(n)), n%2 == 0)
		}
	})
	for done := false; !done; {
		done = r.count.Load() == all
		words := r.copy()
		for i, w := range words {
			if first := words[0] >> 1; w>>1 != first+uint64(i) || w&1 == w>>1&1 {
				t.Fatalf("entry %d of %d is %#x behind %#x", i, len(words), w, words[0])
			}
		}
	}
	wg.Wait()
	if n := len(r.copy()); n < keptTransitions-1 || n > keptTransitions {
		t.Errorf("%d are kept", n)
	}
}

func TestEventsOfOthersAreChecked(t *testing.T) {
	good := (&Event{"weft-progress", 7, true, time.Hour}).put(nil)
	if list, err := parseEvents(good); err != nil || len(list) != 1 ||
		list[0] != (Event{"weft-progress", 7, true, time.Hour}) {
		t.Fatalf("%+v: %v", list, err)
	}
	for name, b := range map[string][]byte{
		"short": good[:31], "name without end": append(bytes.Repeat([]byte("x"), 16), good[16:]...),
		"escape in the name": change(append([]byte("\x1a"), good[1:]...), 0), "state": change(good, 20),
		"thread": append(append(bytes.Clone(good[:19]), 0xff), good[20:]...),
		"time":   append(bytes.Clone(good[:31]), 0xff),
	} {
		if _, err := parseEvents(b); !errors.Is(err, errMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzEvents: what parses is what would be sent.
func FuzzEvents(f *testing.F) {
	f.Add((&Event{"weft-progress", 7, true, time.Hour}).put(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parseEvents(b)
		if err != nil {
			return
		}
		var again []byte
		for _, e := range list {
			again = e.put(again)
		}
		if len(again) != len(b) {
			t.Fatalf("%d bytes give %d", len(b), len(again))
		}
		if second, err := parseEvents(again); err != nil || len(second) != len(list) {
			t.Errorf("%q: %v", again, err)
		}
	})
}
