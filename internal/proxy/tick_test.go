package proxy

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestTick has a service call functions at their times, until they are stopped.
func TestTick(t *testing.T) {
	s, err := StartService(ServiceOptions{Name: "tick", Address: OwnAddress("tick-test"), Place: Placement{Node: -1}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop(time.Second)
	var often, seldom atomic.Int32
	stopOften := s.Tick(func() time.Duration { often.Add(1); return 0 })
	stopSeldom := s.Tick(func() time.Duration { seldom.Add(1); return time.Hour })
	for end := time.Now().Add(10 * time.Second); often.Load() < 20 || seldom.Load() < 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d and %d calls", often.Load(), seldom.Load())
		}
	}
	stopOften()
	n := often.Load()
	time.Sleep(20 * time.Millisecond)
	if often.Load() != n || seldom.Load() != 1 {
		t.Errorf("%d calls after %d, and %d", often.Load(), n, seldom.Load())
	}
	stopSeldom()
}
