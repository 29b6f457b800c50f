package cxi

import (
	"runtime"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/seam"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestDoorbellLeft: a thread that waits for the lock of posts while a message is posted rings for it.
func TestDoorbellLeft(t *testing.T) {
	a, b := newMatching(t, MatchConfig{}, 4096), newMatching(t, MatchConfig{}, 4096)
	at, err := a.i.match.at(b.self, proto.IndexMessages)
	if err != nil {
		t.Fatal(err)
	}
	x := &a.i.match.tx
	for name, wait := range map[string]func(){
		"counters":           func() { a.m.(hw.MatchCounter).MatchStats() },
		"commands in flight": func() { x.inFlight() },
		"a doorbell":         a.m.RingMatched,
		"progress":           x.poll,
	} {
		x.lock.take()
		done := make(chan struct{})
		go func() {
			wait()
			close(done)
		}()
		for x.lock.waiting.Load() == 0 {
			runtime.Gosched()
		}
		if err := x.post(&outgoing{to: b.self, at: at}, []byte("hello"), 1); err != nil {
			t.Fatal(err)
		}
		x.release(false)
		<-done
		if x.q.Waiting() && !x.unrung.isSet() {
			t.Errorf("%s: a message stands without a doorbell", name)
		}
	}
}

// TestDoorbellGivenUp: a poll that has waited for the lock of a queue in vain has a later one ring for what was posted
// meanwhile.
func TestDoorbellGivenUp(t *testing.T) {
	i, peers, nics := hostIface(t, 1)
	e, q := peers[0], peers[0].q
	if err := e.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	nics[0].acknowledge(e, 0, wire.RcOk)
	q.lock.waiting.Add(1) // the poll tries
	if err := e.AMShort(1, 1, nil, nil); err != nil {
		t.Fatal(err)
	}
	q.lock.waiting.Add(-1)
	if !q.q.Waiting() {
		t.Fatal("the doorbell is not left to the poll")
	}
	q.lock.spin.take() // another thread is faster
	if found := q.takeIn(new(seam.Bell)); found != hot.TransportEmpty || !i.driver.corked.isSet() {
		t.Errorf("found %d, and no thread is to ring", found)
	}
	q.give()
}

// TestDoorbellShared: a thread that waits for the lock of the target queue while a receive is posted rings for it, and
// threads that post receives at once ring for each other: all are with the NIC when they have returned.
func TestDoorbellShared(t *testing.T) {
	const threads, count = 3, 200
	b := newMatching(t, MatchConfig{}, 4096)
	x := &b.i.match.rx
	r := hw.MatchReceive{From: hw.AnyAddress, Tagged: true}
	x.lock.take()
	done := make(chan struct{})
	go func() {
		b.m.(hw.MatchCounter).MatchStats()
		close(done)
	}()
	for x.lock.waiting.Load() == 0 {
		runtime.Gosched()
	}
	e, err := b.i.match.entryOf(&r)
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := x.postIn(receivePosted, &e, &r, false); p == nil {
		t.Fatal("a receive finds no room")
	}
	x.release(false)
	<-done
	if x.portal.q.Waiting() {
		t.Error("a receive stands without a doorbell")
	}
	bells := x.portal.q.Bells
	var all sync.WaitGroup
	for range threads {
		all.Go(func() {
			for range count {
				if _, err := b.m.PostReceive(&r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if x.portal.q.Waiting() && !x.unrung.isSet() {
		t.Error("receives stand without a doorbell")
	}
	if n := x.portal.q.Bells - bells; n > threads*count {
		t.Errorf("%d doorbells for %d receives", n, threads*count)
	}
}
