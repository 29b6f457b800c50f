package udp

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/sock"
)

// What a thread that sleeps on the doorbell must hear of although nothing arrives, and what is done
// for it meanwhile.

// rings waits until the bell rings.
func rings(t *testing.T, i *Iface, within time.Duration) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(i.DoorbellFD()), Events: unix.POLLIN}}
	for end := time.Now().Add(within); time.Now().Before(end); {
		if n, _ := unix.Poll(fds, 1); n > 0 {
			return true
		}
	}
	return false
}

// TestSleeperHears: a get is under way to a peer that dies, and what waits for it sleeps. Nothing
// arrives, so only the end itself can wake the sleeper.
func TestSleeperHears(t *testing.T) {
	c, cut := cuttable(500 * time.Millisecond)
	a, b := open(t, false, c), open(t, false, c)
	ep := pair(t, a, b)
	answered(t, a, b, ep)
	if err := a.EnableWait(); err != nil {
		t.Fatal(err)
	}
	cut.Store(true)
	var done hw.Completion
	done.Expect(1)
	ended := false
	done.Func = func(*hw.Completion) { ended = true }
	status, err := ep.(hw.OneSided).GetZcopy([]hw.Segment{segment(make([]byte, 64))}, 0, hw.RemoteKey{1}, &done)
	if err != nil || status != hw.InProgress {
		t.Fatal(status, err)
	}
	a.Arm()
	if a.Pending() {
		t.Fatal("something is pending")
	}
	eventually(t, "the bell", func() bool { return rings(t, a, time.Millisecond) && ep.Err() != nil })
	a.Disarm()
	// The timer loop may still have the stripe.
	eventually(t, "the get's end", func() bool { a.Progress(16); return ended })
	if !errors.Is(done.Err(), hw.ErrPeerDead) {
		t.Errorf("get: %v", done.Err())
	}
}

// TestSleeperRetransmits: a packet is lost whose sender sleeps, after a time in which nothing happened.
func TestSleeperRetransmits(t *testing.T) {
	var took []time.Duration
	for range 3 { // this process may wait for a processor
		took = append(took, lostAsleep(t))
	}
	slices.Sort(took)
	if took[1] > loopIdle {
		t.Errorf("sent again after %v", took)
	}
}

// lostAsleep returns when a message arrives whose first packet was lost.
func lostAsleep(t *testing.T) time.Duration {
	t.Helper()
	var lose atomic.Bool
	c := Config{MaxPacket: 1472, Impair: func(b []byte, to *sock.Addr, send func([]byte, *sock.Addr)) {
		if !lose.Swap(false) {
			send(b, to)
		}
	}}
	a, b := open(t, false, c), open(t, false, Config{MaxPacket: 1472})
	came := false
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { came = true })
	ep := pair(t, a, b)
	if err := a.EnableWait(); err != nil {
		t.Fatal(err)
	}
	answered(t, a, b, ep)
	a.Arm()
	defer a.Disarm()
	time.Sleep(loopLong + 2*loopIdle) // the timer loop has doubled its sleep up to the longest, and is in it
	lose.Store(true)
	begin := time.Now()
	if err := ep.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message", func() bool { b.Progress(1); time.Sleep(100 * time.Microsecond); return came })
	return time.Since(begin)
}

// TestPendingBehindLease: what stands in an inbox rings no bell, so what cannot poll must not sleep.
func TestPendingBehindLease(t *testing.T) {
	a := open(t, false, Config{})
	s := a.stripes[0]
	s.lease.lock()
	pending := a.Pending()
	s.leave()
	if !pending || a.Pending() {
		t.Errorf("pending %v while another thread has the lease", pending)
	}
}

// TestPendingWaitsForLease has nothing pend where another thread gives the lease back soon.
func TestPendingWaitsForLease(t *testing.T) {
	a := open(t, false, Config{})
	for range 10 {
		a.stripes[0].lease.lock()
		time.AfterFunc(100*time.Microsecond, a.stripes[0].lease.unlock)
		if !a.Pending() {
			return
		}
		a.stripes[0].lease.lock()
		a.stripes[0].lease.unlock()
	}
	t.Error("something pends in each of 10 tries")
}

// TestFlushThatWaits: a joint flush finds no room in a full window, and Arm's own poll takes in the
// acknowledgement that makes some. No more arrives then.
func TestFlushThatWaits(t *testing.T) {
	c := Config{MaxPacket: 1472, Window: 64 << 10, MaxBcopy: 8192}
	a, b, other := open(t, false, c), open(t, false, c), open(t, false, c)
	got := 0
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	ep := pair(t, a, b)
	pair(t, a, other) // a flush of one endpoint returns the error
	answered(t, a, b, ep)
	if err := a.EnableWait(); err != nil {
		t.Fatal(err)
	}
	sent := 0
	for ep.AMBcopy(1, 0, nil, 8192, func([]byte) {}, 0) == nil {
		sent++
	}
	for ep.AMShort(1, 0, nil, nil) == nil { // to the last byte
		sent++
	}
	var done hw.Completion
	ended := false
	done.Func = func(*hw.Completion) { ended = true }
	done.Expect(1)
	if status, err := a.Flush(hw.FlushRemote, &done); err != nil || status != hw.InProgress || a.flushes.Len() != 1 {
		t.Fatal(status, err, a.flushes.Len())
	}
	eventually(t, "all messages", func() bool { b.Progress(64); return got == sent })
	b.Arm() // and sends all that it owes
	b.Disarm()
	eventually(t, "the flush's end", func() bool {
		a.Arm()
		if a.Pending() || rings(t, a, 10*time.Millisecond) {
			a.Disarm()
			a.Progress(64)
			b.Progress(64)
			other.Progress(64)
		}
		return ended
	})
	if done.Err() != nil {
		t.Errorf("flush: %v", done.Err())
	}
}
