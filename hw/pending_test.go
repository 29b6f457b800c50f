package hw

import (
	"errors"
	"sync"
	"testing"
)

// fakeEndpoint is a distinct key; none of its methods is called.
type fakeEndpoint struct {
	Endpoint
	name string
}

func TestPendingOrder(t *testing.T) {
	var p Pending
	a, b := &fakeEndpoint{name: "a"}, &fakeEndpoint{name: "b"}
	room := 0
	var ran []int
	try := func(n int) Retry {
		return func() error {
			if room == 0 {
				return ErrNoResource
			}
			room--
			ran = append(ran, n)
			return nil
		}
	}
	for n := range 5 {
		p.Add(a, try(n))
	}
	if p.Dispatch() != 0 || !p.Has(a) || p.Has(b) || p.Len() != 5 {
		t.Fatalf("without room: %d wait, a %v, b %v", p.Len(), p.Has(a), p.Has(b))
	}
	room = 3
	if n := p.Dispatch(); n != 3 || p.Len() != 2 {
		t.Fatalf("%d done, %d wait", n, p.Len())
	}
	room = 9
	if n := p.Dispatch(); n != 2 || p.Has(a) {
		t.Fatalf("%d done, a waits: %v", n, p.Has(a))
	}
	for n := range ran {
		if ran[n] != n {
			t.Fatalf("order %v", ran)
		}
	}
}

// TestPendingOneFull: an endpoint without room does not hold up another.
func TestPendingOneFull(t *testing.T) {
	var p Pending
	a, b := &fakeEndpoint{name: "a"}, &fakeEndpoint{name: "b"}
	done := false
	p.Add(a, func() error { return ErrNoResource })
	p.Add(b, func() error { done = true; return errors.New("broken for good") })
	if n := p.Dispatch(); n != 1 || !done || p.Has(b) || !p.Has(a) {
		t.Errorf("%d done, b tried %v, waits %v", n, done, p.Has(b))
	}
	purged := 0
	p.Purge(a, func(Retry) { purged++ })
	if purged != 1 || p.Len() != 0 {
		t.Errorf("%d purged, %d wait", purged, p.Len())
	}
}

func TestCompletionCounts(t *testing.T) {
	told := 0
	c := Completion{Func: func(*Completion) { told++ }}
	c.Expect(100)
	var wg sync.WaitGroup
	for n := range 100 {
		wg.Go(func() {
			var err error
			if n == 50 {
				err = ErrKey
			}
			c.Update(1, err)
		})
	}
	wg.Wait()
	if told != 1 || !errors.Is(c.Err(), ErrKey) {
		t.Errorf("told %d times, %v", told, c.Err())
	}
}

// countIface counts its calls of Progress; at most one at a time is allowed.
type countIface struct {
	Iface
	t      *testing.T
	inside bool
	calls  int
}

func (c *countIface) Progress(int) int {
	if c.inside {
		c.t.Error("two threads in Progress")
	}
	c.inside = true
	c.calls++
	c.inside = false
	return 1
}

func TestWorkerThreads(t *testing.T) {
	w := NewWorker(ThreadMultiple)
	i := &countIface{t: t}
	w.Add(i)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10000 {
				w.Progress(1)
			}
		})
	}
	wg.Wait()
	if i.calls == 0 {
		t.Error("no progress")
	}
	before := i.calls
	w.Remove(i)
	if n := w.Progress(1); n != 0 || i.calls != before {
		t.Errorf("a removed interface is progressed: %d", n)
	}
}
