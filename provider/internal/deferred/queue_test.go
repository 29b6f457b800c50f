package deferred

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

func newBacklog() *Backlog { return &Backlog{Notify: func() {}} }

// TestLeave drops the operations of an owner in every state: they are not posted and do not complete, and their
// counters may be closed. Those of another owner stay.
func TestLeave(t *testing.T) {
	var q Queue
	on, done := counterOf(t, &q), counterOf(t, &q)
	b, room, sent := newBacklog(), 1, 0
	var first *Op
	add := func(owner any, at uint64) *Op {
		w := &Op{Number: q.Number(), Deferred: true, On: on, At: at, Done: done, Backlog: b}
		w.Sequence.Owner = owner
		w.Post = func() error {
			if room == 0 {
				return fi.EAGAIN
			}
			room--
			sent++
			return nil
		}
		q.Add(w)
		return w
	}
	leaves, stays := new(int), new(string)
	first = add(leaves, 0) // posted, not complete
	add(leaves, 0)         // blocked
	add(leaves, 9)         // waits
	add(stays, 9)
	if sent != 1 || q.Len() != 4 || b.Empty() {
		t.Fatalf("%d sent, %d operations, backlog empty %v", sent, q.Len(), b.Empty())
	}
	q.Leave(leaves)
	room = 5
	q.End(first.Number, false, 8)
	on.Add(9)
	if sent != 2 || valueOf(done) != 0 || q.Len() != 1 || !b.Empty() || q.Ready() {
		t.Fatalf("%d sent, %d done, %d operations, backlog empty %v, ready %v", sent, valueOf(done), q.Len(),
			b.Empty(), q.Ready())
	}
	if err := done.Close(); fi.ErrnoOf(err) != fi.EBUSY {
		t.Fatalf("close of a counter that is to count: %v", err)
	}
	q.Leave(stays)
	for _, c := range []*cq.Counter{on, done} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNumbers: deferred work is found by its number and by its context while it is known.
func TestNumbers(t *testing.T) {
	var q Queue
	on, done := counterOf(t, &q), counterOf(t, &q)
	owner := new(int)
	w := &Op{Number: q.Number(), Deferred: true, Context: 77, On: on, At: 1, Done: done}
	w.Sequence.Owner, w.Post = owner, func() error { return nil }
	if w.Completes() != w.Number || w.Number&NumberBit == 0 || (&Op{Number: 5}).Completes() != 0 {
		t.Fatalf("number %#x completes %#x", w.Number, w.Completes())
	}
	q.Add(w)
	if n := q.PostedAs(owner, 77); n != 77 {
		t.Fatalf("waiting work is posted as %#x", n)
	}
	on.Add(1)
	if n := q.PostedAs(owner, 77); n != w.Number {
		t.Fatalf("posted as %#x, want %#x", n, w.Number)
	}
	if n := q.PostedAs(on, 77); n != 77 {
		t.Fatalf("another owner's is posted as %#x", n)
	}
	if q.ContextOf(w.Number) != 77 || !q.DoneBy(w.Number, done) || q.DoneBy(w.Number, on) {
		t.Fatal("the context or counter of posted work is another")
	}
	q.End(w.Number, true, 0)
	q.End(w.Number, true, 0) // unknown
	if errors := atomic.LoadUint64(&done.Hot().Errors); errors != 1 || q.Len() != 0 || q.ContextOf(w.Number) != 0 {
		t.Fatalf("%d errors, %d operations", errors, q.Len())
	}
}

// TestCancelTriggered cancels by context and owner, in the order of queueing; deferred work is not meant.
func TestCancelTriggered(t *testing.T) {
	var q Queue
	on := counterOf(t, &q)
	mine, other := new(int), new(string)
	var canceled []uint64
	for i, w := range []Op{
		{User: 5, Sequence: Sequence{Owner: mine}}, {User: 6, Sequence: Sequence{Owner: mine}},
		{User: 5, Sequence: Sequence{Owner: other}}, {User: 5, Deferred: true, Sequence: Sequence{Owner: mine}},
		{User: 5, Sequence: Sequence{Owner: mine, Dest: 3}},
	} {
		w.Number, w.On, w.At = q.Number(), on, 1
		w.Fail = func(err fi.Errno) {
			if err != fi.ECANCELED {
				t.Errorf("%v, want %v", err, fi.ECANCELED)
			}
			canceled = append(canceled, uint64(i))
		}
		q.Add(&w)
	}
	if !q.CancelTriggered(5, mine) || q.CancelTriggered(5, mine) || !slices.Equal(canceled, []uint64{0, 4}) {
		t.Fatalf("canceled: %v", canceled)
	}
	if q.Len() != 3 {
		t.Fatalf("%d are left", q.Len())
	}
	q.Cancel(func(*Op) bool { return true })
	if err := on.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWithdrawWhilePosted withdraws an operation while it is being posted: once that has found no room it is gone, and
// is not posted again when there is.
func TestWithdrawWhilePosted(t *testing.T) {
	var q Queue
	on := counterOf(t, &q)
	posting, full := make(chan bool), make(chan bool)
	posts := 0
	q.Add(&Op{Number: q.Number(), On: on, At: 1, Deferred: true, Post: func() error {
		if posts++; posts == 1 {
			posting <- true
			<-full
			return fi.EAGAIN
		}
		return nil
	}})
	done := make(chan bool)
	go func() { on.Add(1); done <- true }()
	<-posting
	go func() { q.Withdraw(func(*Op) bool { return true }); done <- true }()
	time.Sleep(20 * time.Millisecond) // it waits, or has found nothing
	full <- true
	<-done
	<-done
	q.PostReady()
	if posts != 1 || q.Len() != 0 {
		t.Errorf("%d posts, %d are left", posts, q.Len())
	}
	if err := on.Close(); err != nil {
		t.Fatal(err)
	}
}

// steps is a series of some pieces, of which each Pump posts as many as there is room for.
type steps struct {
	left int
	room *int
}

func (s *steps) Pump() bool {
	for ; s.left != 0 && *s.room != 0; s.left-- {
		*s.room--
	}
	return s.left == 0
}

// TestSeries: a series is pumped until it is done, and keeps its context's backlog until then or until it is dropped.
func TestSeries(t *testing.T) {
	var q Queue
	room, notified := 3, 0
	b := &Backlog{Notify: func() { notified++ }}
	first, second := &steps{5, &room}, &steps{4, &room}
	q.AddSeries(first, b)
	q.AddSeries(second, b)
	if notified != 2 || !q.Ready() {
		t.Fatalf("notified %d times, ready %v", notified, q.Ready())
	}
	q.PostReady()
	room = 4
	q.PostReady()
	if first.left != 0 || second.left != 2 || !q.Ready() || b.Empty() {
		t.Fatalf("left: %d and %d, ready %v, backlog empty %v", first.left, second.left, q.Ready(), b.Empty())
	}
	q.AddSeries(&steps{1, &room}, b)
	q.DropSeries(func(s Series) bool { return s == second })
	room = 9
	q.PostReady()
	if second.left != 2 || room != 8 || q.Ready() || !b.Empty() {
		t.Fatalf("dropped with 2 left, now %d; room %d, ready %v, backlog empty %v", second.left, room,
			q.Ready(), b.Empty())
	}
}

// TestManyThreads queues and counts in several threads at once: each operation is posted once.
func TestManyThreads(t *testing.T) {
	var q Queue
	on, done := counterOf(t, &q), counterOf(t, &q)
	const threads, each = 4, 500
	var posts, tries atomic.Int64
	b := newBacklog()
	var wg sync.WaitGroup
	for n := range threads {
		wg.Go(func() {
			for i := range each {
				w := &Op{Number: q.Number(), Deferred: true, On: on, Done: done, Backlog: b}
				w.At, w.Sequence = uint64(i*threads+n), Sequence{Owner: b, Dest: fi.Addr(n)}
				w.Post = func() error {
					if tries.Add(1)%7 == 0 {
						return fi.EAGAIN
					}
					posts.Add(1)
					q.End(w.Number, false, 0)
					return nil
				}
				q.Add(w)
				on.Add(1)
			}
		})
	}
	wg.Wait()
	for range threads * each {
		q.PostReady()
	}
	n, counted, empty := posts.Load(), valueOf(done), q.Len() == 0 && b.Empty() && !q.Ready()
	if n != threads*each || counted != threads*each || !empty {
		t.Fatalf("%d posts, %d counted, %d left, backlog empty %v", n, counted, q.Len(), b.Empty())
	}
}
