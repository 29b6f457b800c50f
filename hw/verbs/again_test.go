package verbs

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// A peer to which the path was lost, and which is there, is connected to again.

// TestHelloOf: of which connection a hello is, by the numbers of queue pairs.
func TestHelloOf(t *testing.T) {
	for _, c := range []struct {
		what  string
		h     hello
		epoch uint32
		first bool
		got   uint32
		want  hellos
	}{
		{"the first of a connection", hello{epoch: 5, first: 5}, 3, true, 0, helloOurs},
		{"its answer to ours", hello{epoch: 5, first: 5}, 3, true, 5, helloOurs},
		{"the first, joined to one that was given up here", hello{epoch: 5, first: 5}, 3, true, 4, helloFormer},
		{"of one that was given up here", hello{epoch: 5, first: 5}, 3, false, 0, helloFormer},
		{"again, joined to ours", hello{epoch: 5, first: 5, applied: 3, peerFirst: 3}, 3, true, 5, helloOurs},
		{"again", hello{epoch: 5, first: 5, applied: 3, peerFirst: 3}, 3, true, 0, helloOurs},
		{"the peer's next queue pair", hello{epoch: 5, first: 5, applied: 3, peerFirst: 3}, 4, false, 0, helloOurs},
		{"the peer's next, and ours is", hello{epoch: 6, first: 5, peerFirst: 3}, 4, false, 0, helloOurs},
		{"its first, after ours has broken", hello{epoch: 6, first: 5, peerFirst: 3}, 3, true, 0, helloLate},
		{"another connection", hello{epoch: 5, first: 5, applied: 3, peerFirst: 3}, 4, true, 0, helloAnew},
		{"another connection, while ours is made anew", hello{epoch: 6, first: 5, peerFirst: 3}, 7, true, 0, helloAnew},
		{"of a former connection", hello{epoch: 5, first: 5, applied: 3, peerFirst: 3}, 2, true, 0, helloLate},
		{"of a former connection, broken", hello{epoch: 5, first: 5, applied: 3, peerFirst: 3}, 2, false, 0, helloLate},
	} {
		p := packet{epoch: c.epoch, got: c.got}
		if c.first {
			p.flags = flagFirst
		}
		if got := c.h.of(&p); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

// TestGraveyard: a peer that has closed is never connected to, one that was lost is again after a time,
// or when the port is back.
func TestGraveyard(t *testing.T) {
	g, now := newGraveyard(), time.Now()
	key := func(n int) (k [addressBytes]byte) { k[0], k[1] = byte(n), byte(n>>8); return k }
	g.add(key(1), time.Time{})
	g.add(key(2), now.Add(time.Second))
	g.add(key(3), now.Add(time.Hour))
	later := now.Add(time.Minute)
	for n, want := range map[int][3]bool{1: {true, true, true}, 2: {true}, 3: {true, true}, 4: {}} {
		if got := [3]bool{g.has(key(n), now), g.has(key(n), later), g.closed(key(n))}; got != want {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
	g.seekAgain(later)
	if g.has(key(3), later) || !g.has(key(1), later) {
		t.Error("when the port is back")
	}
	for range len(g.ring) { // one entry each
		g.add(key(3), time.Time{})
	}
	if !g.closed(key(1)) || !g.closed(key(3)) || len(g.set) != 3 {
		t.Errorf("%d entries, closed %v, %v", len(g.set), g.closed(key(1)), g.closed(key(3)))
	}
	for n := range len(g.ring) - 1 {
		g.add(key(100+n), time.Time{})
	}
	if g.closed(key(1)) || !g.closed(key(3)) || len(g.set) != len(g.ring) {
		t.Error("the oldest have not made room, or others have")
	}
}

// talk is two interfaces that send each other numbered messages, and what has come of them.
type talk struct {
	t    *testing.T
	i    [2]*Iface
	ep   [2]hw.Endpoint // to the other; nil: not connected
	sent [2]uint64
	got  [2][]uint64
	lost [2]int // ends of the endpoints above
}

func newTalk(t *testing.T, c Config) *talk {
	x := &talk{t: t}
	for n := range x.i {
		x.i[n] = open(t, c)
		x.i[n].SetHandler(1, func(_ hw.Source, header uint64, _, _ []byte) { x.got[n] = append(x.got[n], header) })
		x.i[n].OnPeerEvent(func(e hw.PeerEvent) {
			if !errors.Is(e.Err, hw.ErrPeerDead) {
				t.Errorf("the end of a peer: %v", e.Err)
			}
			if e.Endpoint != nil {
				x.lost[n]++
				x.ep[n] = nil
			}
		})
	}
	t.Cleanup(func() { _ = errors.Join(x.i[0].Close(), x.i[1].Close()) })
	return x
}

// until makes progress until f says so.
func (x *talk) until(what string, f func() bool) {
	x.t.Helper()
	for end := time.Now().Add(40 * time.Second); !f(); time.Sleep(50 * time.Microsecond) {
		for _, i := range x.i {
			i.Progress(16)
			i.CheckPeers()
		}
		if time.Now().After(end) {
			x.t.Fatalf("%s: never", what)
		}
	}
}

// say connects, if need be, and has a message go from one interface and come to the other: one that goes over a
// connection that is lost goes again.
func (x *talk) say(from int, number uint64) {
	x.t.Helper()
	x.until(fmt.Sprintf("message %d comes", number), func() bool {
		got := x.got[1-from]
		if len(got) > 0 && got[len(got)-1] == number {
			return true
		}
		if x.sent[from] == number && x.ep[from] != nil {
			return false
		}
		if x.ep[from] == nil {
			ep, err := x.i[from].Connect(x.i[1-from].Address())
			if err != nil {
				if !errors.Is(err, hw.ErrUnreachable) {
					x.t.Fatal(err)
				}
				return false
			}
			x.ep[from] = ep
		}
		err := x.ep[from].AMShort(1, number, nil, nil)
		if err != nil && !errors.Is(err, hw.ErrNoResource) && !errors.Is(err, hw.ErrPeerDead) {
			x.t.Fatal(err)
		}
		if err == nil {
			x.sent[from] = number
		}
		return false
	})
}

// TestConnectAgain: the path is lost for one side, for the other, or for both; then messages flow anew, in order and
// none twice, in both directions, and one-sided operations, too.
func TestConnectAgain(t *testing.T) {
	x := newTalk(t, Config{PathTimeout: 5 * time.Second, KeepAlive: 100 * time.Millisecond})
	next := uint64(1)
	for round := range 6 {
		for n := range 20 {
			x.say(n&1, next)
			next++
		}
		for n := range 2 {
			if round%3 == n || round%3 == 2 {
				e := x.ep[n].(*Endpoint)
				e.fail(fmt.Errorf("the test says so: %w", hw.ErrPeerDead))
				x.until("the end is reported", func() bool { return x.ep[n] == nil })
			}
		}
		if round >= 3 { // the other side speaks first, and learns that its connection was given up
			other := 1 - round%3%2
			if e, ok := x.ep[other].(*Endpoint); ok {
				e.breakMessages()
				x.until("the other side has lost it, too", func() bool { return x.ep[other] == nil })
			}
		}
	}
	x.say(0, next)
	x.say(1, next+1)
	for n, got := range x.got {
		for k, number := range got {
			if k > 0 && number <= got[k-1] {
				t.Errorf("interface %d has got message %d behind %d", n, number, got[k-1])
			}
		}
		if len(got) != 61 || x.lost[n] != 6 {
			t.Errorf("interface %d has got %d messages, and lost the other %d times", n, len(got), x.lost[n])
		}
	}
	x.put()
}

// put writes and reads memory of the second interface.
func (x *talk) put() {
	x.t.Helper()
	there, here := allocated(x.t, x.i[1], 64, hw.RemoteWrite), allocated(x.t, x.i[0], 64, 0)
	key, err := x.i[0].Memory().UnpackKey(there.PackKey(nil))
	if err != nil {
		x.t.Fatal(err)
	}
	copy(bytesOf(here), "weft")
	ended := false
	c := hw.Completion{Func: func(c *hw.Completion) { ended = c.Err() == nil }}
	c.Expect(1)
	local := []hw.Segment{{Addr: here.Region().Addr, Len: 64, Memory: here}}
	x.until("a put begins", func() bool {
		_, err := x.ep[0].(hw.OneSided).PutZcopy(local, 0, key, &c)
		return err == nil
	})
	x.until("a put ends", func() bool { return ended })
	if string(bytesOf(there)[:4]) != "weft" {
		x.t.Error("the put has not arrived")
	}
}

// TestClosedNotAgain: an interface that has closed is not connected to again.
func TestClosedNotAgain(t *testing.T) {
	x := newTalk(t, Config{})
	x.say(0, 1)
	if err := x.i[1].Close(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); x.ep[0] != nil; x.i[0].Progress(16) {
		if time.Now().After(end) {
			t.Fatal("the end is not reported")
		}
	}
	for end := time.Now().Add(againAfter + time.Second/2); time.Now().Before(end); time.Sleep(time.Millisecond) {
		x.i[0].Progress(16)
		if _, err := x.i[0].Connect(x.i[1].Address()); !errors.Is(err, hw.ErrUnreachable) {
			t.Fatal(err)
		}
	}
}
