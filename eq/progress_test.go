package eq

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// addCalls adds a progress that posts event 7 with its n-th call, and returns the number of calls.
func addCalls(q *Queue, n int) (a *Progress, calls *int) {
	calls = new(int)
	ready := make(chan struct{})
	a = q.AddProgress(func() {
		<-ready
		if *calls++; *calls == n {
			q.Post(Event{Number: 7, Entry: []byte{1}})
			a.End()
		}
	})
	close(ready)
	return a, calls
}

// TestProgress shows that reads and sleeps make the progress that an event waits
// for, and that they do no longer when it has ended.
func TestProgress(t *testing.T) {
	q := open(t, fi.EQAttr{WaitObj: fi.WaitUnspec})
	a, calls := addCalls(q, 5)
	buf := make([]byte, 8)
	if _, _, err := q.Read(buf, 0); !errors.Is(err, fi.EAGAIN) || *calls != 1 {
		t.Fatalf("read: %v after %d calls", err, *calls)
	}
	if n, _, err := q.SRead(buf, -1, 0); err != nil || n != 7 || *calls != 5 {
		t.Fatalf("event %d, %v after %d calls", n, err, *calls)
	}
	a.End()
	a.Wait()
	if _, _, err := q.Read(buf, 0); !errors.Is(err, fi.EAGAIN) || *calls != 5 {
		t.Fatalf("read: %v after %d calls", err, *calls)
	}
}

// TestProgressBesideSleeper shows that a thread that sleeps already makes the progress that begins then.
func TestProgressBesideSleeper(t *testing.T) {
	for _, kind := range []fi.WaitObj{fi.WaitFD, fi.WaitMutexCond, fi.WaitYield} {
		q := open(t, fi.EQAttr{WaitObj: kind})
		time.AfterFunc(20*time.Millisecond, func() { addCalls(q, 3) })
		if n, _, err := q.SRead(make([]byte, 8), 60_000, 0); err != nil || n != 7 {
			t.Errorf("wait object %d: event %d, %v", kind, n, err)
		}
	}
}

// TestProgressByWaitSet shows that threads that wait on a set make the progress of its queues, and that the set's
// descriptor wakes those that poll it so that they do.
func TestProgressByWaitSet(t *testing.T) {
	for _, kind := range []fi.WaitObj{fi.WaitFD, fi.WaitYield} {
		set, err := cq.OpenWaitSet(&fi.WaitAttr{WaitObj: kind})
		if err != nil {
			t.Fatal(err)
		}
		q, err := Open(&fi.EQAttr{WaitObj: fi.WaitSet}, set)
		if err != nil {
			t.Fatal(err)
		}
		addCalls(q, 5)
		if err := set.Wait(60_000); err != nil {
			t.Errorf("wait object %d: %v", kind, err)
		}
		buf := make([]byte, 8)
		if n, _, err := q.Read(buf, 0); err != nil || n != 7 {
			t.Errorf("wait object %d: event %d, %v", kind, n, err)
		}
		addCalls(q, 5)
		err = fi.EAGAIN
		for range 5 {
			if rc := set.TryWait(); rc != nil {
				t.Errorf("wait object %d, trywait: %v", kind, rc)
			}
			if kind == fi.WaitFD {
				fds := []unix.PollFd{{Fd: int32(set.FD()), Events: unix.POLLIN}}
				if n, rc := unix.Poll(fds, 60_000); n != 1 && rc != unix.EINTR {
					t.Errorf("the descriptor does not wake: %v", rc)
				}
			}
			_, _, err = q.Read(buf, 0)
		}
		if err != nil {
			t.Errorf("wait object %d, after polls: %v", kind, err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}
