package cxi

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
)

// forTest has tests that ask for no number of stripes run with that of WEFT_TEST_CXI_STRIPES, if it is set.
func (c *MatchConfig) forTest() *MatchConfig {
	if n, err := strconv.Atoi(os.Getenv("WEFT_TEST_CXI_STRIPES")); err == nil && c.Stripes == 0 {
		c.Stripes = n
	}
	return c
}

// TestMatchStripes: an interface has the transmit queues that it is to have; a peer's address chooses one of them, and
// peers are spread over all.
func TestMatchStripes(t *testing.T) {
	for asked, want := range map[int]int{1: 1, 2: 2, 3: 2, 7: 4, 8: 8} {
		a := newMatching(t, MatchConfig{Stripes: asked, Sends: 8, Buffers: 2}, 4096)
		m := a.i.match
		if len(m.txs) != want {
			t.Errorf("%d stripes asked for: %d", asked, len(m.txs))
		}
		used := make([]int, want)
		for k := range 64 * want {
			x := m.txOf(a.self + hw.MatchAddress(k))
			if x != m.txs[x.stripe] || x != m.txOf(a.self+hw.MatchAddress(k)) {
				t.Fatalf("stripe %d is at another place", x.stripe)
			}
			used[x.stripe]++
		}
		if least := slices.Min(used); least == 0 {
			t.Errorf("%d stripes: peers by stripe %d", want, used)
		}
		if err := a.i.Close(); err != nil {
			t.Error(err)
		}
	}
	bad := MatchConfig{Stripes: maxStripes + 1}.withDefaults()
	if bad.check() == nil {
		t.Errorf("%d stripes are admitted", bad.Stripes)
	}
}

// TestMatchCookies: what events carry names stripe and place, and an event of another stripe is none of a stripe's.
func TestMatchCookies(t *testing.T) {
	a := newMatching(t, MatchConfig{Stripes: 8}, 4096)
	for k, x := range a.i.match.txs[1:] {
		if x.stripe != uint32(k+1) || x.owner(5) != uint32(k+1)<<placeBits|5 || uint32(x.cookie(5)) != x.owner(5) {
			t.Errorf("stripe %d has number %d, cookie %#x", k+1, x.stripe, x.cookie(5))
		}
		if x.current(a.i.match.tx.cookie(0)) {
			t.Errorf("stripe %d takes an event of another", k+1)
		}
	}
}

// peerIn opens an interface to which a sender's messages go by a stripe.
func (x *matching) peerIn(stripe int, c MatchConfig, size int) *matching {
	x.t.Helper()
	m := x.i.match
	at, ok := proto.NameOf(uint64(x.self), m.pidBits)
	if !ok {
		x.t.Fatalf("%#x is no address", x.self)
	}
	for at.PID = 300; at.PID>>m.pidBits == 0; at.PID++ {
		if m.txOf(hw.MatchAddress(at.Word())) != m.txs[stripe] || peerPIDs[at.PID] {
			continue
		}
		c.PID = &at.PID
		peerPIDs[at.PID] = true
		x.t.Cleanup(func() { delete(peerPIDs, *c.PID) })
		p := newMatching(x.t, c, size)
		if got := m.txOf(p.self); got != m.txs[stripe] {
			x.t.Fatalf("peer %#x is in stripe %d, not %d", p.self, got.stripe, stripe)
		}
		return p
	}
	x.t.Fatalf("no PID for a peer in stripe %d", stripe)
	return nil
}

// peerPIDs are the PIDs of interfaces that peerIn has opened.
var peerPIDs = map[uint32]bool{}

// crowd are receivers in all stripes of a sender, with what has become of messages to each.
type crowd struct {
	a     *matching
	peers []*matching
	ended atomic.Int64
	tx    []atomic.Uint64 // by peer, the messages that have ended at the sender
}

const (
	crowdPeers = 4
	crowdCount = 120
	crowdMost  = 20000
)

func newCrowd(t *testing.T, stripes int) *crowd {
	c := &crowd{a: newMatching(t, MatchConfig{Stripes: stripes, Sends: 64}, crowdPeers*crowdMost)}
	c.tx = make([]atomic.Uint64, crowdPeers)
	c.a.m.OnMatch(func(e *hw.MatchEvent) {
		c.ended.Add(1)
		if e.Err != nil || e.Context>>32 >= crowdPeers {
			t.Errorf("sender: %+v", *e)
			return
		}
		c.tx[e.Context>>32].Add(1)
	})
	for k := range crowdPeers {
		b := c.a.peerIn(k%stripes, MatchConfig{}, crowdMost)
		b.expose(7, hw.RemoteWrite)
		b.m.OnMatch(func(e *hw.MatchEvent) {
			c.ended.Add(1)
			if e.Err != nil || e.Kind != hw.MatchReceived || e.Tag != e.Context {
				t.Errorf("receiver: %+v", *e)
			}
		})
		c.peers = append(c.peers, b)
	}
	return c
}

// post has one thread post messages of every kind, and writes, to some of the peers.
func (c *crowd) post(t *testing.T, peers []int) {
	lengths := []int{0, 8, 192, 193, 2048, 18434, 19999}
	for n := range crowdCount {
		for _, k := range peers {
			s := hw.MatchSend{To: c.peers[k].self, Tagged: true, Tag: uint64(n), Matched: n%5 == 0, More: n%3 == 0,
				Local: c.a.at(k*crowdMost, lengths[n%len(lengths)]), Context: uint64(k)<<32 | uint64(n)}
			if !untilPosted(t, "message", func() error { return c.a.m.PostMatched(&s) }) {
				return
			}
			w := hw.MatchTransfer{To: c.peers[k].self, Key: 7, Inject: []byte{1, 2, 3}, Context: uint64(k) << 32}
			if !untilPosted(t, "write", func() error { return c.a.i.match.PostTransfer(&w) }) {
				return
			}
		}
	}
}

// TestMatchStripesTogether: two threads that post to different peers, and one of them to the other's too, and two that
// make progress in turns, as holders of a lease: each message finds its receive in the order of its sender's thread,
// and all ends.
func TestMatchStripesTogether(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1") // the peers have PIDs of the test's choice
		return
	}
	for _, stripes := range []int{1, 4} {
		c := newCrowd(t, stripes)
		for _, b := range c.peers {
			for n := range uint64(crowdCount) {
				b.receive(hw.MatchReceive{From: c.a.self, Tagged: true, Tag: 0, Ignore: 1<<48 - 1,
					Local: b.at(0, crowdMost), Context: n})
			}
		}
		var posters, readers sync.WaitGroup
		posters.Go(func() { c.post(t, []int{0, 1}) })
		posters.Go(func() { c.post(t, []int{2, 3}) })
		stop := make(chan struct{})
		var lease sync.Mutex
		for range 2 {
			readers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					lease.Lock()
					n := c.a.i.Progress(16)
					for _, b := range c.peers {
						n += b.i.Progress(16)
					}
					lease.Unlock()
					if _ = c.a.i.Pending(); n == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		const all = crowdPeers * crowdCount * 3
		for end := time.Now().Add(60 * time.Second); c.ended.Load() < all && time.Now().Before(end) && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
		posters.Wait()
		close(stop)
		readers.Wait()
		if n := c.ended.Load(); n != all {
			t.Errorf("%d stripes: %d of %d have ended", stripes, n, all)
		}
		used := map[uint32]bool{}
		for _, b := range c.peers {
			used[c.a.i.match.txOf(b.self).stripe] = true
		}
		if want := min(stripes, crowdPeers); len(used) != want {
			t.Errorf("%d of %d stripes are used", len(used), want)
		}
		for _, x := range c.a.i.match.txs {
			if n := x.inFlight(); n != 0 {
				t.Errorf("stripe %d has %d commands in flight", x.stripe, n)
			}
		}
	}
}

// TestMatchStripesFew: where the service has not as many queues as are asked for an interface has fewer stripes, and
// messages go by each of them; what it does not use is given back.
func TestMatchStripesFew(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "txqs=7")
		return
	}
	for range 2 {
		a := newMatching(t, MatchConfig{Stripes: 8}, 4096)
		if n := len(a.i.match.txs); n != 4 { // one is of weft's own messages
			t.Fatalf("%d stripes", n)
		}
		b := newMatching(t, MatchConfig{}, 4096) // with two queues if a has given one back
		for _, x := range a.i.match.txs {
			b.receive(hw.MatchReceive{From: hw.AnyAddress, Tagged: true, Tag: uint64(x.stripe), Local: b.at(0, 8)})
			o := outgoing{to: b.self, says: proto.Message{Tagged: true, Tag: uint64(x.stripe)}}
			var err error
			if o.at, err = a.i.match.at(b.self, proto.IndexMessages); err != nil {
				t.Fatal(err)
			}
			x.lock.take()
			err = x.post(&o, []byte("hello"), 1)
			if x.release(false); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(20 * time.Second); len(b.events) == 0 || x.inFlight() > 0; {
				if b.i.Progress(8); a.i.Progress(8) < 0 || time.Now().After(end) {
					t.Fatalf("stripe %d: no message", x.stripe)
				}
			}
			b.events = nil
		}
		if err := errors.Join(b.i.Close(), a.i.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
