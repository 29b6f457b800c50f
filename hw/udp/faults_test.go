package udp

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/sock"
)

// crash ends an interface as the end of its process does: nothing is notified.
func crash(i *Iface) {
	i.closed.Store(true)
	i.timerLoop.end()
	i.wait.close()
	if i.xdp != nil {
		i.xdp.Close()
	}
	i.group.Close()
}

// reopen opens an interface at an address that is free again.
func reopen(t *testing.T, address []byte, c Config) *Iface {
	t.Helper()
	a, err := sock.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.AddrPort().Addr().As4()}); err != nil {
		t.Fatal(err)
	}
	c.Logf, c.Memory = t.Logf, NewMemoryDomain()
	i, err := Open(fd, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return i
}

// never is a peer timeout that no test lives to see: what is reported dead was found
// by what the network says.
const never = time.Hour

// gone waits until a's endpoint is reported dead.
func gone(t *testing.T, a *Iface, ep hw.Endpoint) time.Duration {
	t.Helper()
	begin := time.Now()
	var events []hw.PeerEvent
	a.OnPeerEvent(func(e hw.PeerEvent) { events = append(events, e) })
	eventually(t, "the peer's death", func() bool { a.Progress(16); a.CheckPeers(); return len(events) > 0 })
	if e := events[0]; e.Endpoint != ep || !errors.Is(e.Err, hw.ErrPeerDead) || !errors.Is(ep.Err(), hw.ErrPeerDead) {
		t.Errorf("event %+v, endpoint %v", e, ep.Err())
	}
	if err := ep.AMShort(1, 0, nil, nil); !errors.Is(err, hw.ErrPeerDead) {
		t.Errorf("send to the dead: %v", err)
	}
	return time.Since(begin)
}

// TestRestart kills a peer and starts another at its address and port: nothing
// that was sent to the old one reaches the new one.
func TestRestart(t *testing.T) {
	for name, key := range map[string][]byte{"open": nil, "key": []byte("secret")} {
		t.Run(name, func(t *testing.T) {
			c := Config{Key: key, MaxPacket: 1472, PeerTimeout: never}
			a, b := open(t, false, c), open(t, false, c)
			got := 0
			count := func(hw.Source, uint64, []byte, []byte) { got++ }
			b.SetHandler(1, count)
			ep := pair(t, a, b)
			for ep.AMShort(1, 0, nil, make([]byte, 80)) == nil { // until the window is full
			}
			eventually(t, "a message", func() bool { b.Progress(1); return got > 0 })
			crash(b)
			b2 := reopen(t, b.Address(), c)
			late := 0
			b2.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { late++ })
			t.Logf("found after %v", gone(t, a, ep))
			for range 100 {
				b2.Progress(16)
			}
			if late != 0 {
				t.Fatalf("%d messages for the old peer reached the new one", late)
			}
			ep2 := pair(t, a, b2)
			if err := ep2.AMShort(1, 0, nil, nil); err != nil {
				t.Fatal(err)
			}
			eventually(t, "message", func() bool { a.Progress(1); b2.Progress(1); return late == 1 })
		})
	}
}

// TestKilled: the kernel of a killed peer's host says that the port is closed.
func TestKilled(t *testing.T) {
	for name, key := range map[string][]byte{"open": nil, "key": []byte("secret")} {
		t.Run(name, func(t *testing.T) {
			c := Config{Key: key, KeepAlive: 20 * time.Millisecond, PeerTimeout: never}
			a, b := open(t, false, c), open(t, false, c)
			ep := pair(t, a, b)
			for range 50 {
				a.Progress(1)
				b.Progress(1)
			}
			crash(b)
			gone(t, a, ep)
			if _, err := a.Connect(b.Address()); !errors.Is(err, hw.ErrUnreachable) {
				t.Errorf("connect: %v", err)
			}
		})
	}
}

// cuttable returns a configuration whose packets are lost while cut is true.
func cuttable(peerTimeout time.Duration) (c Config, cut *atomic.Bool) {
	cut = new(atomic.Bool)
	c = Config{PeerTimeout: peerTimeout, KeepAlive: 50 * time.Millisecond, MaxPacket: 1472}
	c.Impair = func(b []byte, to *sock.Addr, send func([]byte, *sock.Addr)) {
		if !cut.Load() {
			send(b, to)
		}
	}
	return c, cut
}

// TestPause: a network that carries nothing for a while.
func TestPause(t *testing.T) {
	c, cut := cuttable(never)
	a, b := open(t, false, c), open(t, false, c)
	got := uint64(0)
	b.SetHandler(1, func(_ hw.Source, header uint64, _, _ []byte) {
		if header != got {
			t.Errorf("message %d came as %d", header, got)
		}
		got++
	})
	ep := pair(t, a, b)
	cut.Store(true)
	for n := range uint64(10) {
		if err := ep.AMShort(1, n, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(150 * time.Millisecond); time.Now().Before(end); a.Progress(1) {
	}
	cut.Store(false)
	eventually(t, "messages", func() bool { a.Progress(1); b.Progress(16); return got == 10 })
	answered(t, a, b, ep)
}

// answered waits until nothing is under way from a to b any more.
func answered(t *testing.T, a, b *Iface, ep hw.Endpoint) {
	t.Helper()
	eventually(t, "all answers", func() bool {
		a.Progress(1)
		b.Progress(1)
		s := ep.(*Endpoint).s
		s.lease.lock()
		defer s.leave()
		return ep.(*Endpoint).tx.sent.Flying() == 0
	})
}

// TestSilence: a network that carries nothing any longer.
func TestSilence(t *testing.T) {
	const limit = time.Second // the peer's thread may wait for a processor, too
	c, cut := cuttable(limit)
	a, b := open(t, false, c), open(t, false, c)
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
	ep := pair(t, a, b)
	answered(t, a, b, ep)
	cutAt := time.Now()
	cut.Store(true)
	var c1 hw.Completion
	ended := false
	c1.Func = func(*hw.Completion) { ended = true }
	c1.Expect(1)
	if status, err := ep.(hw.Flusher).Flush(hw.FlushRemote, &c1); err != nil || status != hw.InProgress {
		t.Fatal(status, err)
	}
	gone(t, a, ep)
	if since := time.Since(cutAt); since < limit-100*time.Millisecond { // a question may have been under way already
		t.Errorf("found when it was cut for %v", since)
	}
	eventually(t, "the flush's end", func() bool { a.Progress(1); return ended })
	if !errors.Is(c1.Err(), hw.ErrPeerDead) {
		t.Errorf("flush: %v", c1.Err())
	}
}

// TestBusyPeer: a process that does not progress for long is not dead.
func TestBusyPeer(t *testing.T) {
	// the other's goroutine may wait for a processor, too
	c := Config{PeerTimeout: 2 * time.Second, KeepAlive: 50 * time.Millisecond}
	a, b := open(t, false, c), open(t, false, c)
	ep := pair(t, a, b)
	got := 0
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	if err := ep.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		a.Progress(1)
		a.CheckPeers()
	}
	if ep.Err() != nil {
		t.Fatalf("the peer computes and is taken for dead: %v", ep.Err())
	}
	eventually(t, "message", func() bool { b.Progress(1); return got == 1 })
}

// packetSize is how long packets to a peer are. Threads of weft change it with the lease.
func packetSize(ep hw.Endpoint) int {
	c := ep.(*Endpoint)
	c.s.lease.lock()
	defer c.s.leave()
	return c.tx.mtu.Size()
}

// TestShrinkingPath: the path's MTU shrinks while messages flow, and nothing says so.
func TestShrinkingPath(t *testing.T) {
	var limit atomic.Int64
	limit.Store(9000)
	c := Config{MaxPacket: 8972, MaxBcopy: 8192}
	c.Impair = func(b []byte, to *sock.Addr, send func([]byte, *sock.Addr)) {
		if int64(len(b)) <= limit.Load() {
			send(b, to)
		}
	}
	a, b := open(t, false, c), open(t, false, c)
	ep := pair(t, a, b)
	payload := bytes.Repeat([]byte("x"), 8192)
	got := 0
	b.SetHandler(1, func(_ hw.Source, _ uint64, _, p []byte) {
		if !bytes.Equal(p, payload) {
			t.Error("damaged")
		}
		got++
	})
	flow := func(count int) {
		t.Helper()
		want := got + count
		sent := 0
		eventually(t, "messages", func() bool {
			if sent < count && ep.AMBcopy(1, 0, nil, len(payload), func(d []byte) { copy(d, payload) }, 0) == nil {
				sent++
			}
			a.Progress(1)
			b.Progress(16)
			return got == want
		})
	}
	flow(200)
	if size := packetSize(ep); size != 8972 {
		t.Errorf("packets of %d bytes", size)
	}
	limit.Store(1400)
	begin := time.Now()
	flow(200)
	t.Logf("recovered and sent after %v", time.Since(begin))
	size := 0
	for range 2000 { // the search goes on
		flow(1)
		if size = packetSize(ep); size > 1400-32 {
			break
		}
	}
	if size > 1400 || size < 1400-32 {
		t.Errorf("packets of %d bytes", size)
	}
}

// TestClockSteps: a wall clock that is set does not reach round-trip times.
func TestClockSteps(t *testing.T) {
	i := open(t, false, Config{})
	s := i.stripes[0]
	s.lease.lock()
	defer s.leave()
	now := i.now()
	s.emptyAt = now - 1000
	for _, c := range []struct{ wall, stamp, ago time.Duration }{
		{time.Hour, time.Hour - 300, 300},
		{time.Hour, 1, 1000},                // set forward by an hour
		{time.Hour, 2 * time.Hour, 0},       // set back
		{time.Hour, 0, 0},                   // no stamp
		{time.Hour, time.Hour - 9999, 1000}, // it cannot have been there that long
	} {
		s.message.Stamp = c.stamp
		if at := s.arrival(now, c.wall); now.Sub(at) != c.ago {
			t.Errorf("wall %v, stamp %v: %v ago, want %v", c.wall, c.stamp, now.Sub(at), c.ago)
		}
	}
}

// TestRegionGone: a region goes while a get of it is served. The get fails, and
// the connection works on.
func TestRegionGone(t *testing.T) {
	c := Config{MaxPacket: 1472}
	a, b := open(t, false, c), open(t, false, c)
	ep := pair(t, a, b).(*Endpoint)
	got := 0
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	mine, theirs := make([]byte, 1<<20), make([]byte, 1<<20)
	for n := 1; n <= 20; n++ {
		m, err := b.Memory().Register(regionOf(theirs))
		if err != nil {
			t.Fatal(err)
		}
		key, err := a.Memory().UnpackKey(m.PackKey(nil))
		if err != nil {
			t.Fatal(err)
		}
		var done hw.Completion
		ended := false
		done.Func = func(*hw.Completion) { ended = true }
		done.Expect(1)
		if _, err := ep.GetZcopy([]hw.Segment{segment(mine)}, 0, key, &done); err != nil {
			t.Fatal(err)
		}
		for range n % 4 { // it is under way
			b.Progress(1)
			a.Progress(1)
		}
		m.Close()
		eventually(t, "the get's end", func() bool { b.Progress(1); a.Progress(1); return ended })
		if err := ep.AMShort(1, 0, nil, nil); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a message", func() bool { a.Progress(1); b.Progress(1); return got == n })
	}
}

// TestLastWords: what a peer sent before it closed is delivered, and operations that it answered
// have succeeded, before its end is reported, although all came between two polls.
func TestLastWords(t *testing.T) {
	a, b := open(t, false, Config{}), open(t, false, Config{})
	ep, back := pair(t, a, b).(*Endpoint), pair(t, b, a).(*Endpoint)
	heard, reported := false, 0
	a.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { heard = true })
	a.OnPeerEvent(func(hw.PeerEvent) {
		reported++
		if !heard {
			t.Error("the peer's end overtook its message")
		}
	})
	var flushed hw.Completion
	var result error
	ended := false
	flushed.Func = func(c *hw.Completion) { ended, result = true, c.Err() }
	flushed.Expect(1)
	if _, err := ep.Flush(hw.FlushRemote, &flushed); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the peer's answer", func() bool {
		b.Progress(1)
		back.s.lease.lock()
		defer back.s.leave()
		return back.tx.tail != 0
	})
	if err := back.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	b.Close()
	eventually(t, "the peer's Close", func() bool {
		a.CheckPeers()
		ep.s.lease.lock()
		defer ep.s.leave()
		return ep.ended
	})
	a.CheckPeers()
	if reported != 0 {
		t.Error("the peer's end was reported before its message was delivered")
	}
	eventually(t, "the peer's end", func() bool { a.Progress(1); a.CheckPeers(); return ended && reported != 0 })
	if result != nil {
		t.Errorf("flush: %v", result)
	}
}

// TestCloseFreesPort: once all messages have arrived, the port is free, whether or
// not the peer answers the Close; while some have not, it is taken, and Settle waits.
func TestCloseFreesPort(t *testing.T) {
	for name, lost := range map[string]bool{"all arrived": false, "one lost": true} {
		t.Run(name, func(t *testing.T) {
			var cut atomic.Bool
			c := Config{MaxPacket: 1472, Linger: time.Minute}
			c.Impair = func(b []byte, to *sock.Addr, send func([]byte, *sock.Addr)) {
				if !cut.Load() {
					send(b, to)
				}
			}
			a, b := open(t, false, c), open(t, false, c)
			got := false
			b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got = true })
			ep := pair(t, a, b).(*Endpoint)
			if err := ep.AMShort(1, 0, nil, nil); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the message's acknowledgement", func() bool {
				a.Progress(1)
				b.Progress(1)
				ep.s.lease.lock()
				defer ep.s.leave()
				return got && ep.tx.acked == ep.tx.tail
			})
			cut.Store(true)
			if lost {
				if err := ep.AMShort(1, 0, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			a.Close()
			address, err := sock.Parse(a.Address())
			if err != nil {
				t.Fatal(err)
			}
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(address.Port()), Addr: address.AddrPort().Addr().As4()})
			if lost != errors.Is(err, unix.EADDRINUSE) {
				t.Errorf("bind: %v", err)
			}
			var settled atomic.Bool
			go func() {
				Settle()
				settled.Store(true)
			}()
			if !lost {
				eventually(t, "Settle's end", settled.Load)
				return
			}
			time.Sleep(10 * time.Millisecond)
			if settled.Load() {
				t.Error("Settle did not wait")
			}
			got = false
			cut.Store(false)
			eventually(t, "the message and Settle's end", func() bool {
				b.Progress(1)
				return got && settled.Load()
			})
		})
	}
}
