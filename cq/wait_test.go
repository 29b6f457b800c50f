package cq

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
)

// kinds are the wait objects that a blocking read sleeps on.
var kinds = []fi.WaitObj{fi.WaitUnspec, fi.WaitFD, fi.WaitMutexCond, fi.WaitYield, fi.WaitPollFD}

// readable reports whether a descriptor is, within ms milliseconds.
func readable(t testing.TB, fd, ms int) bool {
	t.Helper()
	for {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, ms)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}
}

// later runs f after a while and returns a function that waits for its end:
// what publishes still checks whether to wake, so a queue must not be closed
// before.
func later(f func()) (join func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(5 * time.Millisecond)
		f()
	}()
	return func() { <-done }
}

func TestSReadTimeout(t *testing.T) {
	for _, kind := range kinds {
		q := open(t, fi.CQAttr{WaitObj: kind}, Options{})
		dst := make([]Entry, 1)
		for _, ms := range []int{0, 30} {
			begin := time.Now()
			_, err := q.SRead(dst, 0, ms)
			wantErr(t, err, fi.EAGAIN)
			if d := time.Since(begin); d < time.Duration(ms)*time.Millisecond {
				t.Errorf("kind %d: returned after %v, want %d ms", kind, d, ms)
			}
		}
		if q.hot.Armed != 0 {
			t.Errorf("kind %d: armed while nothing sleeps", kind)
		}
		q.Complete(entry(4))
		if n, err := q.SRead(dst, 0, 0); n != 1 || err != nil || dst[0] != entry(4) {
			t.Errorf("kind %d: %d %v", kind, n, err)
		}
	}
	for _, kind := range []fi.WaitObj{fi.WaitNone} {
		q := open(t, fi.CQAttr{WaitObj: kind}, Options{})
		q.Complete(entry(1))
		_, err := q.SRead(make([]Entry, 1), 0, 0)
		wantErr(t, err, fi.ENOSYS)
		wantErr(t, q.Wait(0), fi.ENOSYS)
		wantErr(t, q.Signal(), fi.ENOSYS)
		wantErr(t, q.TryWait(), fi.EINVAL)
		if q.FD() != -1 {
			t.Error("a queue without wait object has a descriptor")
		}
	}
}

// TestSReadWakes has an entry, an error, or a message of a peer end a sleep.
func TestSReadWakes(t *testing.T) {
	for _, kind := range kinds {
		q := open(t, fi.CQAttr{WaitObj: kind}, Options{Stripes: 1})
		d := newDoorbell(t, q)
		d.add(t, q.wait)
		dst := make([]Entry, 2)
		for name, act := range map[string]func(){
			"entry":   func() { q.Complete(entry(1)) },
			"stripe":  func() { q.TryComplete(1, entry(1)) },
			"message": d.deliver,
			"late": func() {
				c, _ := claim(q, 1)
				time.Sleep(5 * time.Millisecond)
				c.fill(q, entry(1))
			},
		} {
			join := later(act)
			begin := time.Now()
			// nothing woke it
			if n, err := q.SRead(dst, 0, 60000); n != 1 || err != nil || time.Since(begin) >= time.Minute {
				t.Errorf("kind %d, %s: %d %v after %v", kind, name, n, err, time.Since(begin))
			}
			join()
		}
		join := later(func() { q.CompleteError(entry(1), ErrorInfo{Err: fi.EIO}) })
		_, err := q.SRead(dst, 0, 10000)
		join()
		wantErr(t, err, fi.EAVAIL)
		if _, err = q.ReadErr(); err != nil {
			t.Error(err)
		}
	}
}

// TestNoLostWake lets sleepers and producers meet at every moment: each round
// ends only if something wakes.
func TestNoLostWake(t *testing.T) {
	rounds := 20000
	if testing.Short() {
		rounds = 2000
	}
	for _, sleepers := range []int{1, 3} {
		for _, ring := range []string{"local", "doorbell"} {
			t.Run(fmt.Sprintf("%s/sleepers=%d", ring, sleepers), func(t *testing.T) {
				q := open(t, fi.CQAttr{WaitObj: fi.WaitFD}, Options{})
				d := newDoorbell(t, q)
				d.add(t, q.wait)
				complete := func() { q.Complete(entry(1)) }
				if ring == "doorbell" {
					complete = d.deliver
				}
				meet(t, q, sleepers, rounds, complete)
			})
		}
	}
}

// meet completes one to three entries a round; the sleepers read one each time.
func meet(t *testing.T, q *Queue, sleepers, rounds int, complete func()) {
	var read atomic.Int64
	var wg sync.WaitGroup
	var over atomic.Bool
	ack := make(chan struct{}, 8)
	for range sleepers {
		wg.Go(func() {
			dst := make([]Entry, 1)
			for !over.Load() {
				if n, _ := q.SRead(dst, 0, 100000); n == 1 {
					read.Add(1)
					ack <- struct{}{}
				}
			}
		})
	}
	for round := range rounds {
		n := 1 + round%3
		for i := range n {
			for range (round * 7 * i) % 50 { // vary the moment
				runtime.Gosched()
			}
			complete()
		}
		for range n {
			select {
			case <-ack:
			case <-time.After(time.Minute):
				t.Fatalf("round %d: a wake-up was lost: armed %d, pending %v", round, atomic.LoadUint32(&q.hot.Armed),
					q.pending())
			}
		}
	}
	over.Store(true)
	stop := make(chan struct{})
	go func() { wg.Wait(); close(stop) }()
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Millisecond):
			q.Signal()
		}
	}
}

// TestNothingWaits shows that completions cost no system call then.
func TestNothingWaits(t *testing.T) {
	q := open(t, fi.CQAttr{WaitObj: fi.WaitFD}, Options{})
	d := newDoorbell(t, q)
	d.add(t, q.wait)
	q.SRead(make([]Entry, 1), 0, 1)
	if d.armed.Load() != 0 {
		t.Error("the doorbell is armed while nothing sleeps")
	}
	q.Complete(entry(1))
	d.deliver()
	if readable(t, q.FD(), 0) || d.rings.Load() != 0 {
		t.Error("something was woken")
	}
	wantRead(t, q, 1)
}

// TestNativeStaysArmed has a thread sleep and leave while an application polls
// the descriptor: what comes then must still make it readable.
// TestAttention has work that nothing rings for.
func TestThreshold(t *testing.T) {
	q := open(t, fi.CQAttr{WaitObj: fi.WaitFD, WaitCond: fi.CQCondThreshold}, Options{})
	join := later(func() {
		for n := range uint64(5) {
			time.Sleep(2 * time.Millisecond)
			q.Complete(entry(n))
		}
	})
	dst := make([]Entry, 8)
	if n, err := q.SRead(dst, 5, 10000); n != 5 || err != nil {
		t.Errorf("%d %v, want 5", n, err)
	}
	join()
	q.Complete(entry(1))
	if n, err := q.SRead(dst, 100, 10); n != 1 || err != nil { // the time is over
		t.Errorf("%d %v, want 1", n, err)
	}
	for n := range uint64(10) {
		q.Complete(entry(n))
	}
	if n, err := q.SRead(dst, 100, 10000); n != 8 || err != nil { // the buffer is full
		t.Errorf("%d %v, want 8", n, err)
	}
	q.CompleteError(entry(1), ErrorInfo{Err: fi.EIO})
	if n, err := q.SRead(dst, 5, 10000); n != 2 || err != nil { // an error is next
		t.Errorf("%d %v, want 2", n, err)
	}
	q.ReadErr()
}

func TestSignal(t *testing.T) {
	for _, kind := range kinds {
		q := open(t, fi.CQAttr{WaitObj: kind}, Options{})
		results := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := q.SRead(make([]Entry, 1), 0, -1)
				results <- err
			}()
		}
		for range 2 {
			for done := false; !done; {
				if err := q.Signal(); err != nil {
					t.Fatal(err)
				}
				select {
				case err := <-results:
					wantErr(t, err, fi.EAGAIN)
					done = true
				case <-time.After(10 * time.Millisecond):
				}
			}
		}
		q.dropSignal()
		q.Signal() // before the wait
		wantErr(t, q.Wait(10000), fi.EAGAIN)
	}
}

// TestMutexCond has the watcher pass wake-ups on to a condition variable.
// TestSharedDoorbell shows that a thread that stops sleeping on one queue
// leaves the doorbell armed for one that sleeps on another.
func TestSharedDoorbell(t *testing.T) {
	tx := open(t, fi.CQAttr{WaitObj: fi.WaitFD}, Options{})
	rx := open(t, fi.CQAttr{WaitObj: fi.WaitFD}, Options{})
	d := newDoorbell(t, rx)
	d.add(t, tx.wait)
	d.add(t, rx.wait)
	d.add(t, rx.wait) // bound for both directions
	done := make(chan error)
	go func() {
		_, err := rx.SRead(make([]Entry, 1), 0, 10000)
		done <- err
	}()
	for d.armed.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	tx.SRead(make([]Entry, 1), 0, 2)
	d.deliver()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if d.rings.Load() != 1 {
		t.Errorf("rang %d times", d.rings.Load())
	}
}

func TestSourceErrors(t *testing.T) {
	q := open(t, fi.CQAttr{WaitObj: fi.WaitFD}, Options{})
	d := newDoorbell(t, q)
	wantErr(t, q.RemoveSource(&d.source), fi.EINVAL)
	wantErr(t, q.AddSource(&Source{FD: -1}), fi.EINVAL)
	bad := Source{FD: 1 << 20, Arm: func() {}, HasWork: func() bool { return false }, Progress: func() {}}
	if err := q.AddSource(&bad); !errors.Is(err, unix.EBADF) {
		t.Errorf("a bad descriptor gives %v", err)
	}
	if n := len(q.wait.sources.all()); n != 0 {
		t.Errorf("%d sources left", n)
	}
}

// TestRemoveArmedSource takes a source away from a queue that is armed.
func TestRemoveArmedSource(t *testing.T) {
	q := open(t, fi.CQAttr{WaitObj: fi.WaitFD}, Options{})
	d := newDoorbell(t, q)
	if err := errors.Join(q.AddSource(&d.source), q.TryWait()); err != nil {
		t.Fatal(err)
	}
	if d.armed.Load() != 1 {
		t.Fatal("not armed")
	}
	if err := q.RemoveSource(&d.source); err != nil {
		t.Fatal(err)
	}
	if d.armed.Load() != 0 || readable(t, q.FD(), 0) {
		t.Error("still armed")
	}
	d.deliver()
	if readable(t, q.FD(), 0) {
		t.Error("the doorbell still wakes")
	}
}

// TestClosesAll shows that nothing is left of queues and counters.
func TestClosesAll(t *testing.T) {
	count := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(fds)
	}
	before, threads := count(), runtime.NumGoroutine()
	for range 200 {
		for _, kind := range kinds {
			q, err := Open(&fi.CQAttr{WaitObj: kind}, Options{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			q.Waiter().OnWake(func() {})
			q.TryWait()
			c, err := OpenCounter(&fi.CntrAttr{WaitObj: kind}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(q.Close(), c.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	// A watcher has done its work when Close returns; the runtime still counts it.
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > threads; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), threads)
		}
	}
}
