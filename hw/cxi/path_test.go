package cxi

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// loses has a question to the peer's NIC be lost, some time after the one before.
func (e *Endpoint) loses(after time.Duration) {
	e.q.take()
	if e.lostSince != 0 {
		e.lostSince -= int64(after)
	}
	e.present(wire.RcUndeliverable)
	e.q.give()
}

// TestPathWorks: an operation that ends well between two losses says that the path works; losses alone that last end
// the peer.
func TestPathWorks(t *testing.T) {
	_, peers, _ := hostIface(t, 1)
	e, q := peers[0], peers[0].q
	q.ops, q.free = make([]op, 1), []uint32{0}
	e.loses(0)
	q.take()
	o, n := q.begin(e, opPlain)
	q.commit(o, n)
	q.opEnded(n, wire.RcOk)
	q.give()
	if e.loses(e.i.cfg.PathTimeout); e.Err() != nil {
		t.Errorf("an operation has ended well meanwhile: %v", e.Err())
	}
	if e.loses(e.i.cfg.PathTimeout); e.Err() == nil {
		t.Error("the path has been lost for longer than it may")
	}
}

// TestPathAskedAgain: a peer whose answer was lost is asked again, also one that is heard.
func TestPathAskedAgain(t *testing.T) {
	a, b := open(t, Config{KeepAlive: time.Hour}), open(t, Config{})
	t.Cleanup(func() { _ = errors.Join(a.Close(), b.Close()) })
	ep, err := a.Connect(b.Address())
	if err != nil {
		t.Fatal(err)
	}
	e := ep.(*Endpoint)
	for greeted := false; !greeted; a.Progress(8) { // nothing else is answered from then on
		e.q.take()
		greeted = e.greeted && e.w.inflight == 0 && !e.asked.Load() && e.ops.count == 0
		e.q.give()
	}
	e.loses(0)
	for end := time.Now().Add(10 * time.Second); ; {
		e.hears()
		a.CheckPeers()
		a.Progress(8)
		e.q.take()
		lost := e.lostSince != 0
		e.q.give()
		if !lost {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the peer is not asked again")
		}
	}
}
