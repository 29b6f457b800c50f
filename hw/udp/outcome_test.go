package udp

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// TestOutcomeBeforeEnd: the peer's answer to a flush has arrived and is not delivered when the
// connection dies. The flush ends with the answer, and one that has none with the peer.
func TestOutcomeBeforeEnd(t *testing.T) {
	a, b := open(t, false, Config{}), open(t, false, Config{})
	ep := pair(t, a, b)
	answered(t, a, b, ep)
	c := ep.(*Endpoint)
	flush := func(done *hw.Completion) {
		t.Helper()
		done.Expect(1)
		if status, err := c.Flush(hw.FlushRemote, done); err != nil || status != hw.InProgress {
			t.Fatal(status, err)
		}
	}
	var first, second hw.Completion
	ended := 0
	first.Func = func(*hw.Completion) { ended++ }
	second.Func = first.Func
	flush(&first)
	eventually(t, "the answer", func() bool {
		b.Progress(1)
		c.s.lease.lock()
		defer c.s.leave()
		c.s.work()
		return c.rx.queued
	})
	flush(&second)
	c.s.lease.lock()
	c.die("the test ends it")
	c.s.leave()
	a.CheckPeers()
	if ended != 0 || c.Reported() {
		t.Fatalf("%d flushes ended, end reported %v, before the answer was delivered", ended, c.Reported())
	}
	a.Progress(16)
	eventually(t, "the flushes' end", func() bool { a.Progress(16); a.CheckPeers(); return ended == 2 && c.Reported() })
	if first.Err() != nil || !errors.Is(second.Err(), hw.ErrPeerDead) {
		t.Errorf("flush that was answered: %v, the other: %v", first.Err(), second.Err())
	}
}

// TestOutcomeBehindError: the peer has answered a flush and is gone, of which the kernel says before it hands out the
// answer.
func TestOutcomeBehindError(t *testing.T) {
	for range 10 {
		a, b := open(t, false, Config{NoInbox: true}), open(t, false, Config{NoInbox: true})
		ep := pair(t, a, b)
		answered(t, a, b, ep)
		c := ep.(*Endpoint)
		ended := 0
		done := hw.Completion{Func: func(*hw.Completion) { ended++ }}
		done.Expect(1)
		if status, err := c.Flush(hw.FlushRemote, &done); err != nil || status != hw.InProgress {
			t.Fatal(status, err)
		}
		c.s.lease.lock() // nothing reads meanwhile
		for range 20 {
			b.Progress(16)
			time.Sleep(100 * time.Microsecond)
		}
		crash(b)
		c.tx.ping, c.tx.urgent = true, true
		c.transmit(a.now())
		c.s.leave() // sends to the closed port
		eventually(t, "the flush's end", func() bool { a.Progress(16); a.CheckPeers(); return ended == 1 })
		if err := done.Err(); err != nil {
			t.Fatalf("a flush that the peer has answered: %v", err)
		}
		eventually(t, "the peer's end", func() bool { a.Progress(16); a.CheckPeers(); return c.Reported() })
	}
}
