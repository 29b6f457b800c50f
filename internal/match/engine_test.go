package match

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/mem"
)

// mustPost posts a receive that matches no unexpected message.
func mustPost(t *testing.T, e *Engine, source uint32, tag, ignore uint64) *Recv {
	t.Helper()
	r, m := e.Post(source, tag, ignore)
	if r == nil || m != nil {
		t.Fatalf("Post(%#x, %#x, %#x): %v, %v; want it queued", source, tag, ignore, r, m)
	}
	return r
}

// TestPostingOrder posts receives of different classes that all match, and checks that they are used in the order
// they were posted, those beyond the classes among them.
func TestPostingOrder(t *testing.T) {
	e := newEngine(t)
	var posted []*Recv
	for i := range uint64(3 * MaxClasses) {
		source := uint32(5)
		if i%3 == 0 {
			source = AnySource
		}
		posted = append(posted, mustPost(t, e, source, 1<<20, i%11))
	}
	if e.extra.n == 0 {
		t.Error("no receive went beyond the classes")
	}
	for i, want := range posted {
		if r := e.Arrive(5, 1<<20); r != want {
			t.Fatalf("arrival %d matched %v, want %v", i, r, want)
		}
	}
	if r := e.Arrive(5, 1<<20); r != nil {
		t.Errorf("arrival matched %v, want nothing", r)
	}
}

// TestClassesAreRecycled shows that a program that goes through many masks does not end up searching lists.
func TestClassesAreRecycled(t *testing.T) {
	e := newEngine(t)
	for i := range uint64(100) {
		m := e.Hold(1, 1<<50)
		r := mustPost(t, e, 1, 0, i)
		if e.extra.n != 0 {
			t.Fatalf("the receive with mask %d has no class", i)
		}
		if r := e.Arrive(1, i); r == nil {
			t.Fatalf("mask %d does not match", i)
		}
		e.Release(r)
		if got := e.Take(AnySource, 1<<50, i<<8); got != m {
			t.Fatalf("mask %d: took %v, want %v", i, got, m)
		}
		e.ReleaseMessage(m)
	}
}

// TestKeep shows a multi-receive buffer: it matches until it is removed, and then the next one does.
func TestKeep(t *testing.T) {
	e := newEngine(t)
	first, second := mustPost(t, e, AnySource, 0, 0), mustPost(t, e, AnySource, 0, 0)
	first.SetKeep(true)
	for i := range uint32(10) {
		if r := e.Arrive(i, 0); r != first || !r.Posted() {
			t.Fatalf("arrival %d matched %v, want %v", i, r, first)
		}
	}
	if !e.Remove(first) || first.Posted() {
		t.Error("Remove does not remove")
	}
	if r := e.Arrive(1, 0); r != second || r.Posted() {
		t.Errorf("matched %v, want %v", r, second)
	}
}

// TestStates shows that calls on nodes in the wrong state do nothing, or panic where going on would corrupt.
func TestStates(t *testing.T) {
	e := newEngine(t)
	r := mustPost(t, e, 1, 2, 0)
	mustPanic(t, "release of a posted receive", func() { e.Release(r) })
	if e.Arrive(1, 2) != r || e.Remove(r) {
		t.Error("a matched receive can be removed")
	}
	e.Release(r)
	mustPanic(t, "second release", func() { e.Release(r) })

	m := e.Hold(1, 2)
	mustPanic(t, "release of an unexpected message", func() { e.ReleaseMessage(m) })
	if !e.Claim(m, 77) || e.Claim(m, 78) {
		t.Error("claim: want true, then false")
	}
	mustPanic(t, "release of a claimed message", func() { e.ReleaseMessage(m) })
	if e.Take(1, 2, 0) != nil || e.Peek(1, 2, 0) != nil {
		t.Error("a claimed message matches")
	}
	if e.FindClaimed(78) != nil || e.FindClaimed(77) != m || e.TakeClaimed(77) != m || e.TakeClaimed(77) != nil {
		t.Error("the claimed message is not found once by its context")
	}
	if e.RemoveMessage(m) {
		t.Error("a message that was taken can be removed")
	}
	e.Discard(m)
	if c := e.Counts(); c != (Counts{}) {
		t.Errorf("counts %+v", c)
	}
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, errRelease) {
			t.Errorf("%s: recovered %v", what, err)
		}
	}()
	f()
}

func TestIDs(t *testing.T) {
	e := newEngine(t)
	seen := map[uint32]bool{0: true}
	for i := range uint64(2000) {
		if id := mustPost(t, e, 1, i, 0).ID(); seen[id] {
			t.Fatalf("id %d twice", id)
		} else {
			seen[id] = true
		}
		if id := e.Hold(2, i).ID(); seen[id] {
			t.Fatalf("id %d twice", id)
		} else {
			seen[id] = true
		}
	}
}

// TestWalkStops leaves the loops early, in every part of them.
func TestWalkStops(t *testing.T) {
	e := newEngine(t)
	for i := range uint64(4) {
		mustPost(t, e, 1, i, 0)
		if m := e.Hold(2, i); i < 2 {
			e.Claim(m, i)
		}
	}
	n := 0
	for range e.Recvs() {
		if n++; n == 2 {
			break
		}
	}
	for range e.Messages() {
		if n++; n == 3 {
			break
		}
	}
	for m := range e.Messages() {
		if n++; m.Claimed() {
			break
		}
	}
	if n != 6 {
		t.Errorf("%d steps, want 6", n)
	}
}

// burst queues n receives and n messages and empties both queues.
func burst(t *testing.T, e *Engine, n uint64) {
	t.Helper()
	for i := range n {
		mustPost(t, e, 1, i, 0)
		e.Hold(2, i)
	}
	for i := range n {
		e.Release(e.Arrive(1, i))
		m := e.Take(AnySource, i, 0)
		e.ReleaseMessage(m)
	}
}

// TestShrinks shows that memory that a burst took is given back after a while, and at once by Trim.
func TestShrinks(t *testing.T) {
	e := newEngine(t)
	burst(t, e, 10)
	small := e.Mapped()
	burst(t, e, 5000)
	large := e.Mapped()
	if large < small+5000*2*128 {
		t.Fatalf("mapped %d, then %d", small, large)
	}
	burst(t, e, 5000)
	if e.Mapped() != large {
		t.Errorf("mapped %d after the same burst, want %d", e.Mapped(), large)
	}
	for range 2 * quietDrains {
		burst(t, e, 1)
	}
	e.Reclaim()
	if e.Mapped() > small {
		t.Errorf("mapped %d after a quiet time, want %d", e.Mapped(), small)
	}
	burst(t, e, 5000)
	if err := e.Trim(); err != nil || e.Mapped() > small {
		t.Errorf("Trim: %v, mapped %d, want %d at most", err, e.Mapped(), small)
	}
	burst(t, e, 5000)
	if err := e.Close(); err != nil || e.Mapped() != 0 {
		t.Errorf("Close: %v, mapped %d", err, e.Mapped())
	}
	burst(t, e, 5000) // a closed engine may be used again
}

// TestWalkWhileShrinking removes everything in a loop, and gives the memory back, with positions that are large as
// signed numbers.
func TestWalkWhileShrinking(t *testing.T) {
	e := newEngine(t)
	e.posted.head, e.posted.tail = 3<<30, 3<<30
	e.unexpected.head, e.unexpected.tail = 3<<30, 3<<30
	for i := range uint64(3 * minOrder) {
		mustPost(t, e, 1, i, 0)
		e.Hold(2, i)
	}
	e.posted.drains, e.unexpected.drains = quietDrains-1, quietDrains-1
	for r := range e.Recvs() {
		e.Remove(r)
		e.Release(r)
	}
	for m := range e.Messages() {
		e.Discard(m)
	}
	e.Reclaim()
	if c := e.Counts(); c != (Counts{}) || e.posted.mask != 0 || e.unexpected.mask != 0 {
		t.Errorf("counts %+v, rings of %d and %d", c, e.posted.ring.Len(), e.unexpected.ring.Len())
	}
}

func TestIdleMemory(t *testing.T) {
	if e := newEngine(t); e.Mapped() != 0 {
		t.Errorf("a new engine maps %d bytes", e.Mapped())
	}
}

// TestNoMemory shows what the caller sees when memory is exhausted, and that the engine is as before.
func TestNoMemory(t *testing.T) {
	e := newEngine(t)
	restore := mem.InjectFaults(func(int) error { return unix.ENOMEM })
	defer restore()
	if r, m := e.Post(1, 2, 3); r != nil || m != nil || !errors.Is(e.Err(), unix.ENOMEM) {
		t.Errorf("Post: %v, %v, %v; want ENOMEM", r, m, e.Err())
	}
	e.err = nil
	if m := e.Hold(1, 2); m != nil || !errors.Is(e.Err(), unix.ENOMEM) {
		t.Errorf("Hold: %v, %v; want ENOMEM", m, e.Err())
	}
	if c := e.Counts(); c != (Counts{}) {
		t.Errorf("counts %+v", c)
	}
	restore()
	mustPost(t, e, 1, 2, 3)
	if e.Hold(4, 2) == nil {
		t.Errorf("Hold with memory: %v", e.Err())
	}
}

// TestNoHeap shows that no operation allocates on the Go heap.
func TestNoHeap(t *testing.T) {
	e := newEngine(t)
	cycle := func() {
		for i := range uint64(20) {
			e.Post(1, i, 0)
			e.Post(AnySource, i, 1<<40)
			e.Hold(2, i<<50)
			e.Hold(3, i<<50)
		}
		for i := range uint64(20) {
			e.Release(e.Arrive(1, i))
			r := e.Arrive(7, i)
			e.Remove(r)
			e.Release(r)
			m := e.Take(AnySource, i<<50, 0)
			e.ReleaseMessage(m)
			m = e.Peek(3, i<<50, 0)
			e.Claim(m, i)
			e.ReleaseMessage(e.TakeClaimed(i))
		}
		r, _ := e.Post(1, 1, 1)
		r.Context = 99
		for r := range e.Recvs() {
			r.Len++
		}
		for m := range e.Messages() {
			m.Len++
		}
		e.Release(e.Cancel(99))
	}
	cycle()
	if n := testing.AllocsPerRun(100, cycle); n != 0 {
		t.Errorf("%v heap allocations", n)
	}
}
