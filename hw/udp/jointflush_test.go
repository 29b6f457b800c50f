package udp

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// full has a connection give ErrNoResource until the function that it returns is called.
func full(c *Endpoint) (end func()) {
	c.s.lease.lock()
	defer c.s.leave()
	o := c.ops.begin(opFlush)
	c.tx.fence = true
	return func() {
		c.s.lease.lock()
		defer c.s.leave()
		c.ops.end(o)
	}
}

// fan connects an interface to two others.
func fan(t *testing.T) (i *Iface, first *Endpoint) {
	i = open(t, false, Config{})
	for range 2 {
		peer := open(t, false, Config{})
		ep := pair(t, i, peer)
		answered(t, i, peer, ep)
		if first == nil {
			first = ep.(*Endpoint)
		}
	}
	return i, first
}

// The completion of a joint flush of which a part waited for room posts another, of which a part waits, too.
func TestJointFlushAgain(t *testing.T) {
	i, c := fan(t)
	ended := 0
	var first, second hw.Completion
	var room func()
	flush := func(done *hw.Completion) {
		room = full(c)
		done.Expect(1)
		if status, err := i.Flush(hw.FlushLocal, done); err != nil || status != hw.InProgress {
			t.Errorf("Flush: %v, %v", status, err)
		}
	}
	second.Func = func(*hw.Completion) { ended++ }
	first.Func = func(*hw.Completion) { ended++; flush(&second) }
	flush(&first)
	i.Progress(1)
	if ended != 0 {
		t.Fatal("a joint flush ended before all of its parts")
	}
	over := make(chan bool)
	go func() {
		for want := 1; want <= 2; want++ {
			room()
			for ended < want {
				i.Progress(1)
			}
		}
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("a flush that the completion of another posts waits for ever")
	}
	if first.Err() != nil || second.Err() != nil {
		t.Errorf("the flushes ended with %v and %v", first.Err(), second.Err())
	}
}

// Close ends a joint flush of which a part waits for room.
func TestJointFlushClosed(t *testing.T) {
	i, c := fan(t)
	full(c)
	ended := 0
	done := hw.Completion{Func: func(*hw.Completion) { ended++ }}
	done.Expect(1)
	if status, err := i.Flush(hw.FlushLocal, &done); err != nil || status != hw.InProgress {
		t.Fatalf("Flush: %v, %v", status, err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if ended != 1 || !errors.Is(done.Err(), hw.ErrCanceled) {
		t.Errorf("after Close the flush ended %d times, with %v", ended, done.Err())
	}
}
