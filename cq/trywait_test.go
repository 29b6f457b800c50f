package cq

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
)

func TestTryWait(t *testing.T) {
	for _, kind := range []fi.WaitObj{fi.WaitFD, fi.WaitPollFD, fi.WaitUnspec} {
		q := open(t, fi.CQAttr{WaitObj: kind}, Options{})
		d := newDoorbell(t, q)
		d.add(t, q.wait)
		for name, act := range map[string]func(){
			"entry":   func() { q.Complete(entry(1)) },
			"error":   func() { q.CompleteError(entry(1), ErrorInfo{Err: fi.EIO}) },
			"message": d.deliver,
			"signal":  func() { q.Signal() },
		} {
			if err := q.TryWait(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if readable(t, q.FD(), 0) {
				t.Fatalf("%s: readable before", name)
			}
			act()
			if !readable(t, q.FD(), 1000) {
				t.Fatalf("%s: not readable", name)
			}
			wantErr(t, q.TryWait(), fi.EAGAIN)
			q.Read(make([]Entry, 1))
			q.ReadErr()
			if err := q.TryWait(); err != nil {
				t.Fatalf("%s: %v after all was read", name, err)
			}
			if readable(t, q.FD(), 0) {
				t.Fatalf("%s: still readable", name)
			}
		}
		if q.Waiter().Kind() == fi.WaitUnspec {
			t.Error("no wait object was chosen")
		}
	}
}

func TestNativeStaysArmed(t *testing.T) {
	q := open(t, fi.CQAttr{WaitObj: fi.WaitFD}, Options{})
	d := newDoorbell(t, q)
	d.add(t, q.wait)
	for _, act := range []func(){func() { q.Complete(entry(1)) }, d.deliver} {
		if err := q.TryWait(); err != nil {
			t.Fatal(err)
		}
		q.SRead(make([]Entry, 1), 0, 1)
		act()
		if !readable(t, q.FD(), 1000) {
			t.Error("the wake-up was lost")
		}
		wantRead(t, q, 1)
	}
}

func TestAttention(t *testing.T) {
	q := open(t, fi.CQAttr{WaitObj: fi.WaitFD}, Options{})
	d := newDoorbell(t, q)
	d.add(t, q.wait)
	d.waiting.Store(5)
	if n, err := q.SRead(make([]Entry, 1), 0, 10000); n != 1 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	d.waiting.Store(5)
	for range 100 {
		if err := q.TryWait(); err == nil && !readable(t, q.FD(), 1000) {
			t.Fatal("nothing wakes what polls the descriptor")
		}
		if n, _ := q.Read(make([]Entry, 1)); n == 1 {
			return
		}
	}
	t.Error("the work was not done")
}

func TestMutexCond(t *testing.T) {
	q := open(t, fi.CQAttr{WaitObj: fi.WaitMutexCond}, Options{})
	d := newDoorbell(t, q)
	d.add(t, q.wait)
	woken := make(chan struct{}, 100)
	q.Waiter().OnWake(func() { woken <- struct{}{} })
	for name, act := range map[string]func(){
		"entry":   func() { q.Complete(entry(1)) },
		"message": d.deliver,
		"work":    func() { d.waiting.Store(1) },
	} {
		if name == "work" {
			act() // nothing will ring
		}
		if err := q.TryWait(); err != nil {
			t.Fatal(err)
		}
		if name != "work" {
			act()
		}
		select {
		case <-woken:
		case <-time.After(time.Minute):
			t.Fatalf("%s: not woken", name)
		}
		for q.wait.found() || d.waiting.Load() > 0 {
			q.Read(make([]Entry, 1))
		}
	}
	if err := q.TryWait(); err != nil { // leave a watcher to Close
		t.Fatal(err)
	}
}
