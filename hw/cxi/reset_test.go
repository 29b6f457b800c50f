package cxi

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// refuseReset fills the receiver and ends the connection: what tells it so is refused.
func (f *filled) refuseReset() (e *Endpoint) {
	f.t.Helper()
	f.fill()
	gone := 0
	f.a.OnPeerEvent(func(hw.PeerEvent) { gone++ })
	e = f.ep.(*Endpoint)
	e.end(fmt.Errorf("given up: %w", hw.ErrPeerDead))
	for end := time.Now().Add(time.Minute); gone == 0 || e.word.backoff == 0; f.a.Progress(8) {
		if time.Now().After(end) {
			f.t.Fatalf("%d events of the peer's end, the last word is refused: %v", gone, e.word.backoff != 0)
		}
	}
	if gone != 1 || !e.Reported() {
		f.t.Fatalf("%d events of the peer's end, reported %v", gone, e.Reported())
	}
	return e
}

// TestResetRefused: a peer that is full when a connection to it is given up learns it when it has room.
func TestResetRefused(t *testing.T) {
	f := newFilled(t)
	for range 20 {
		e := f.refuseReset()
		other := f.b.ids.Load().find(f.a.addr.id())
		if err := other.Err(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); !other.lease.reclaimed || !e.lease.reclaimed; f.a.Progress(8) {
			if f.b.Progress(8); time.Now().After(end) {
				t.Fatalf("the peer's connection: %v", other.Err())
			}
		}
		ep, err := f.a.Connect(f.b.Address())
		if err != nil {
			t.Fatal(err)
		}
		f.ep, f.sent = ep, f.got
		f.exchange(20)
	}
}

// TestResetNever: an endpoint whose peer is full for ever is reclaimed all the same.
func TestResetNever(t *testing.T) {
	f := newFilled(t)
	f.a.cfg.PathTimeout = 50 * time.Millisecond
	e := f.refuseReset()
	for end := time.Now().Add(time.Minute); !e.lease.reclaimed || f.a.anyTodo.Load(); f.a.Progress(8) {
		if time.Now().After(end) {
			t.Fatal("the endpoint is not reclaimed")
		}
	}
}

// TestPresenceRefused: a NIC that has no room for the question whether an interface is there is asked again; where no
// entry answers, another interface has its place.
func TestPresenceRefused(t *testing.T) {
	_, peers, _ := hostIface(t, 1)
	e := peers[0]
	e.q.take()
	defer e.q.give()
	for _, code := range []uint32{wire.RcResourceBusy, wire.RcNoTargetTrs, wire.RcUndeliverable} {
		if e.present(code); e.Err() != nil {
			t.Fatalf("code %d: %v", code, e.Err())
		}
	}
	if e.present(wire.RcEntryNotFound); e.Err() == nil {
		t.Error("an interface without an entry is there")
	}
}
