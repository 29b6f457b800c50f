package provider

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
)

// wantError takes the error that is next, without making progress.
func (s *side) wantError(context uint64, want fi.Errno) {
	s.t.Helper()
	e, err := s.cq.ReadErr()
	if err != nil || e.Err != want || e.Context != context {
		s.t.Fatalf("error entry %v for %d (%v), want %v for %d", e.Err, e.Context, err, want, context)
	}
}

// TestUrgent cancels and searches with nothing in sight: both end within the
// call, so that a program which polls rarely sees it at its next poll.
func TestUrgent(t *testing.T) {
	s := newBench(t, nil, nil).side(t)
	s.recv(RecvArgs{IOV: iovOf(make([]byte, 8)), Src: fi.AddrUnspec, Tagged: true, Context: 1})
	if err := s.ep.Cancel(1); err != nil {
		t.Fatal(err)
	}
	s.wantError(1, fi.ECANCELED)
	s.recv(RecvArgs{Src: fi.AddrUnspec, Tagged: true, Flags: fi.Peek, Context: 2})
	s.wantError(2, fi.ENOMSG)
}

// TestUrgentElsewhere cancels while another thread makes progress: pollers are
// asked to poll, however that thread's publishing falls.
func TestUrgentElsewhere(t *testing.T) {
	s := newBench(t, nil, nil).side(t)
	r := leasedOf(s.ep).rx
	for publish := range 2 {
		s.recv(RecvArgs{IOV: iovOf(make([]byte, 8)), Src: fi.AddrUnspec, Tagged: true, Context: 1})
		if r.base.take() == nil {
			t.Fatal("another makes progress")
		}
		if err := s.ep.Cancel(1); err != nil {
			t.Fatal(err)
		}
		if publish == 1 {
			r.publish()
		}
		r.give()
		if !dataplane.PostsAreWork(r.base.hot) {
			t.Fatal("nothing would read the cancel")
		}
		s.ep.Progress()
		s.wantError(1, fi.ECANCELED)
		if dataplane.PostsAreWork(r.base.hot) {
			t.Fatal("pollers are still sent to poll")
		}
		if n, err := s.cq.Read(make([]cq.Entry, 1)); n != 0 || !errors.Is(err, fi.EAGAIN) {
			t.Fatalf("%d entries, %v", n, err)
		}
	}
}

// TestUrgentAsleep cancels while one thread makes progress and is past what was posted, and another one sleeps on the
// queue: the sleeper finds the cancel, long before its next tick.
func TestUrgentAsleep(t *testing.T) {
	s := newBench(t, nil, nil).sideWith(t, fi.WaitFD)
	s.recv(RecvArgs{IOV: iovOf(make([]byte, 8)), Src: fi.AddrUnspec, Tagged: true, Context: 1})
	ended := make(chan error, 1)
	go func() {
		_, err := s.cq.SRead(make([]cq.Entry, 1), 1, -1)
		ended <- err
	}()
	for atomic.LoadUint32(&s.cq.Hot().Armed) == 0 {
		time.Sleep(time.Millisecond)
	}
	r := s.ep.base.rx.acquire()
	began := time.Now()
	if err := s.ep.Cancel(1); err != nil {
		t.Fatal(err)
	}
	r.give()
	if err := <-ended; !errors.Is(err, fi.EAVAIL) || time.Since(began) > 400*time.Millisecond {
		t.Fatalf("%v after %v", err, time.Since(began))
	}
	s.wantError(1, fi.ECANCELED)
}
