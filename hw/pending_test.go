package hw

import (
	"errors"
	"sync"
	"testing"
	"time"
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

// A retry may use the queue that it is in: it adds operations of any endpoint, asks for them and dispatches,
// which does nothing while it runs, and what it adds waits for the next turn.
func TestPendingRetryUses(t *testing.T) {
	var p Pending
	a, b := &fakeEndpoint{name: "a"}, &fakeEndpoint{name: "b"}
	ran := 0
	again := func() error { ran++; return nil }
	ended := make(chan int)
	p.Add(a, func() error {
		p.Add(a, again)
		p.Add(b, again)
		if n := p.Dispatch(); n != 0 || !p.Has(a) || !p.Has(b) || p.Len() != 3 {
			t.Errorf("within a retry: Dispatch() = %d, %d wait", n, p.Len())
		}
		return nil
	})
	go func() { ended <- p.Dispatch() }()
	select {
	case n := <-ended:
		if n != 1 || ran != 0 || p.Len() != 2 {
			t.Errorf("Dispatch() = %d, %d of those added meanwhile ran, %d wait", n, ran, p.Len())
		}
	case <-time.After(time.Minute):
		t.Fatal("a retry that uses its queue waits for ever")
	}
	if n := p.Dispatch(); n != 2 || ran != 2 || p.Len() != 0 {
		t.Errorf("Dispatch() = %d, %d ran, %d wait", n, ran, p.Len())
	}
}

// An endpoint whose operations are purged while one of them is tried: each ends once, tried or purged.
func TestPendingPurgedMeanwhile(t *testing.T) {
	for name, result := range map[string]error{"done": nil, "no room": ErrNoResource} {
		var p Pending
		a := &fakeEndpoint{name: "a"}
		purged, later := 0, 0
		p.Add(a, func() error {
			p.Purge(a, func(Retry) { purged++ })
			if purged != 1 || p.Has(a) || p.Len() != 1 {
				t.Errorf("%s: within the retry %d purged, %d wait", name, purged, p.Len())
			}
			p.Add(a, func() error { later++; return nil })
			return result
		})
		p.Add(a, func() error { t.Errorf("%s: a purged operation is tried", name); return nil })
		p.Dispatch()
		p.Dispatch()
		want := 1
		if result != nil {
			want = 2
		}
		if purged != want || later != 1 || p.Len() != 0 {
			t.Errorf("%s: %d purged of %d, that added later ran %d times, %d wait", name, purged, want, later, p.Len())
		}
	}
}

// Threads add and dispatch beside each other: each operation succeeds once, an endpoint's in their order.
func TestPendingThreads(t *testing.T) {
	const threads, each = 4, 300
	var p Pending
	var wg sync.WaitGroup
	for k := range threads {
		ep := &fakeEndpoint{name: string(rune('a' + k))}
		next, refused := 0, false // a queue's operations are tried one at a time
		wg.Go(func() {
			for n := range each {
				p.Add(ep, func() error {
					if refused = !refused; refused {
						return ErrNoResource
					}
					if next != n {
						t.Errorf("%s: operation %d runs, %d is next", ep.name, n, next)
					}
					next++
					return nil
				})
				p.Dispatch()
			}
			for p.Has(ep) {
				p.Dispatch()
			}
			if next != each {
				t.Errorf("%s: %d of %d operations ran", ep.name, next, each)
			}
		})
	}
	wg.Wait()
	if p.Len() != 0 {
		t.Errorf("%d wait", p.Len())
	}
}

func TestCompletionCounts(t *testing.T) {
	notified := 0
	c := Completion{Func: func(*Completion) { notified++ }}
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
	if notified != 1 || !errors.Is(c.Err(), ErrKey) {
		t.Errorf("notified %d times, %v", notified, c.Err())
	}
}

// TestCompletionAllocs: an operation that ends well allocates nothing.
func TestCompletionAllocs(t *testing.T) {
	c := Completion{Func: func(*Completion) {}}
	if n := testing.AllocsPerRun(100, func() {
		c.Expect(1)
		c.Update(1, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
