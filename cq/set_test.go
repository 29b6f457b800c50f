package cq

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
)

var setKinds = []fi.WaitObj{fi.WaitUnspec, fi.WaitFD, fi.WaitMutexCond, fi.WaitPollFD, fi.WaitYield}

// newMembers opens a queue and a counter in a set.
func newMembers(t *testing.T, ws *WaitSet) (*Queue, *Counter) {
	t.Helper()
	q, err := Open(&fi.CQAttr{WaitObj: fi.WaitSet}, Options{}, ws)
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenCounter(&fi.CntrAttr{WaitObj: fi.WaitSet}, ws)
	if err != nil {
		t.Fatal(err)
	}
	return q, c
}

// inSet opens a set with a queue and a counter in it.
func inSet(t *testing.T, kind fi.WaitObj) (*WaitSet, *Queue, *Counter) {
	t.Helper()
	ws, err := OpenWaitSet(&fi.WaitAttr{WaitObj: kind})
	if err != nil {
		t.Fatal(err)
	}
	q, c := newMembers(t, ws)
	t.Cleanup(func() {
		wantErr(t, ws.Close(), fi.EBUSY)
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		wantErr(t, ws.Close(), fi.EBUSY)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := ws.Close(); err != nil {
			t.Error(err)
		}
	})
	return ws, q, c
}

func TestWaitSet(t *testing.T) {
	for _, kind := range setKinds {
		ws, q, c := inSet(t, kind)
		d := newDoorbell(t, q)
		d.add(t, q.wait)
		d.add(t, c.wait) // the same descriptor twice in one set
		wantErr(t, ws.Wait(0), fi.ETIMEDOUT)
		wantErr(t, ws.Wait(10), fi.ETIMEDOUT)
		for name, act := range map[string]func(){
			"entry":   func() { q.Complete(entry(1)) },
			"message": d.deliver,
			"count":   func() { c.Count(1) },
			"error":   func() { c.CountError(1) },
			"signal":  func() { q.Signal() },
		} {
			join := later(act)
			if err := ws.Wait(10000); err != nil {
				t.Errorf("kind %d, %s: %v", kind, name, err)
			}
			join()
			q.Read(make([]Entry, 1))
			if err := ws.Wait(0); fi.ErrnoOf(err) != fi.ETIMEDOUT {
				t.Errorf("kind %d, %s: notified twice", kind, name)
			}
		}
		_, err := q.SRead(make([]Entry, 1), 0, 0)
		wantErr(t, err, fi.ENOSYS)
		wantErr(t, c.Wait(0, 0), fi.ENOSYS)
		if q.FD() != -1 || c.FD() != -1 {
			t.Error("a member has the set's descriptor")
		}
	}
	for _, kind := range []fi.WaitObj{fi.WaitNone, fi.WaitSet, 9} {
		_, err := OpenWaitSet(&fi.WaitAttr{WaitObj: kind})
		wantErr(t, err, fi.EINVAL)
	}
	_, err := OpenWaitSet(&fi.WaitAttr{WaitObj: fi.WaitFD, Flags: 1})
	wantErr(t, err, fi.EINVAL)
}

func TestWaitSetTryWait(t *testing.T) {
	ws, q, c := inSet(t, fi.WaitFD)
	for _, act := range []func(){func() { q.Complete(entry(1)) }, func() { c.Count(1) }} {
		if err := ws.TryWait(); err != nil {
			t.Fatal(err)
		}
		if readable(t, ws.FD(), 0) {
			t.Fatal("readable before")
		}
		act()
		if !readable(t, ws.FD(), 1000) {
			t.Fatal("not woken")
		}
		wantErr(t, q.TryWait(), fi.EAGAIN) // asks the set
		q.Read(make([]Entry, 1))
	}
	ws2, q2, _ := inSet(t, fi.WaitYield)
	if ws2.FD() != -1 || ws2.TryWait() != nil {
		t.Error("a yielding set has a descriptor or refuses")
	}
	q2.Complete(entry(1))
	wantErr(t, ws2.TryWait(), fi.EAGAIN)
}

func TestPollSet(t *testing.T) {
	if _, err := OpenPollSet(&fi.PollAttr{Flags: 1}); fi.ErrnoOf(err) != fi.EINVAL {
		t.Errorf("flags give %v", err)
	}
	p, err := OpenPollSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	q := open(t, fi.CQAttr{WaitObj: fi.WaitFD}, Options{})
	c := openCounter(t, fi.CntrAttr{}, nil)
	d := newDoorbell(t, q)
	d.add(t, q.wait)
	for range 2 { // twice is as good as once
		p.Add(q, 11)
		p.Add(c, 22)
	}
	poll := func(n int, want ...uint64) {
		t.Helper()
		got := make([]uint64, n)
		got = got[:p.Poll(got)]
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("poll gave %v, want %v", got, want)
		}
	}
	poll(4)
	if err := q.Signal(); err != nil { // for threads that sleep: there is nothing to read
		t.Fatal(err)
	}
	poll(4)
	d.deliver()
	poll(4, 11)
	poll(4, 11) // until it is read
	c.Count(1)
	poll(4, 11, 22)
	poll(4, 11) // a change is notified once
	c.CountError(1)
	poll(4, 11, 22)
	c.Add(5)
	c.Set(7)
	c.AddErr(1)
	poll(4, 11, 22) // whatever changes it
	poll(4, 11)
	c.Set(7)
	poll(4, 11) // to what it was
	c.SetErr(9)
	poll(4, 11, 22)
	c.Count(1)
	seen := map[uint64]bool{}
	for range 2 {
		got := make([]uint64, 1)
		if p.Poll(got) != 1 {
			t.Fatal("nothing")
		}
		seen[got[0]] = true
	}
	if !seen[11] || !seen[22] {
		t.Errorf("one at a time gives %v", seen)
	}
	wantErr(t, q.Close(), fi.EBUSY)
	if err := p.Remove(q); err != nil {
		t.Fatal(err)
	}
	wantErr(t, p.Remove(q), fi.EINVAL)
	poll(4)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWaitSetLeave: a member may be closed while a thread waits on the set, and closing waits until that thread is done
// with it.
func TestWaitSetLeave(t *testing.T) {
	ws, _, _ := inSet(t, fi.WaitFD)
	q, err := Open(&fi.CQAttr{WaitObj: fi.WaitSet}, Options{}, ws)
	if err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	src := &Source{FD: -1, HasWork: func() bool { return true }, Progress: func() {
		close(entered)
		<-leave
		q.Complete(entry(1))
	}}
	if err := q.AddSource(src); err != nil {
		t.Fatal(err)
	}
	waited, closed := make(chan error), make(chan error)
	go func() { waited <- ws.Wait(10000) }()
	<-entered
	go func() { closed <- q.Close() }()
	select {
	case err := <-closed:
		t.Fatalf("closed beside a thread that makes progress of it: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(leave)
	for _, c := range []chan error{waited, closed} {
		if err := <-c; err != nil {
			t.Error(err)
		}
	}
	wantErr(t, ws.Wait(0), fi.ETIMEDOUT)
}

// TestWaitSetMembersComeAndGo: members are opened and closed while threads wait on the set.
func TestWaitSetMembersComeAndGo(t *testing.T) {
	ws, _, _ := inSet(t, fi.WaitFD)
	var ended atomic.Bool
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() {
			for !ended.Load() {
				_ = ws.Wait(1) // a member has something, or none does
				_ = ws.TryWait()
			}
		})
	}
	for range 500 {
		q, c := newMembers(t, ws)
		q.Complete(entry(1))
		c.Count(1)
		if err := errors.Join(q.Close(), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	ended.Store(true)
	waiting.Wait()
}
