package cxi

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// station is an interface that counts what comes.
type station struct {
	*Iface
	got  []uint64
	gone int
}

func newStation(t *testing.T) *station {
	s := &station{Iface: open(t, Config{RxBuffers: 4, RxBytes: 4096, BounceBytes: 256, KeepAlive: time.Hour})}
	s.SetHandler(1, func(_ hw.Source, header uint64, _, _ []byte) { s.got = append(s.got, header) })
	s.OnPeerEvent(func(hw.PeerEvent) { s.gone++ })
	return s
}

// until turns stations until f is true.
func until(t *testing.T, what string, f func() bool, stations ...*station) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); {
		for _, s := range stations {
			s.Progress(4)
			s.CheckPeers()
		}
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// reach connects from one station to another, while stations turn.
func reach(t *testing.T, from, to *station, turn ...*station) hw.Endpoint {
	t.Helper()
	var ep hw.Endpoint
	until(t, "a station is not reached", func() bool {
		var err error
		ep, err = from.Connect(to.Address())
		if err != nil && !errors.Is(err, hw.ErrUnreachable) {
			t.Fatal(err)
		}
		return err == nil
	}, turn...)
	return ep
}

// say sends a message and waits until it is the last of to's.
func say(t *testing.T, ep hw.Endpoint, n uint64, to *station, turn ...*station) {
	t.Helper()
	until(t, fmt.Sprintf("message %d is not sent", n), func() bool {
		err := ep.AMShort(1, n, nil, nil)
		if err != nil && !errors.Is(err, hw.ErrNoResource) {
			t.Fatalf("message %d: %v", n, err)
		}
		return err == nil
	}, turn...)
	until(t, fmt.Sprintf("message %d does not come", n),
		func() bool { return len(to.got) > 0 && to.got[len(to.got)-1] == n }, turn...)
}

// rounds of both tests.
const rounds = 100

// TestPeerRestarts: a peer ends, with or without a word, and another takes its place at once and sends: every message
// comes, and an answer to it.
func TestPeerRestarts(t *testing.T) {
	a, b := newStation(t), newStation(t)
	ids := map[uint32]bool{}
	for n := range uint64(rounds) {
		ids[b.addr.id()] = true
		say(t, reach(t, b, a, a, b), n, a, a, b)
		say(t, reach(t, a, b, a, b), n, b, a, b)
		var err error
		if n%2 == 0 {
			err = b.Close()
		} else { // as when its process is killed
			b.closed.Store(true)
			err = b.release()
		}
		if err != nil {
			t.Fatal(err)
		}
		b = newStation(t)
	}
	if len(ids) > rounds/2 {
		t.Errorf("%d of %d peers have had the place of another", rounds-len(ids), rounds)
	}
	if len(a.got) != rounds {
		t.Errorf("%d messages came, of %d", len(a.got), rounds)
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

// TestConfirm: a peer that is there is confirmed, also while an older question is on its way; one whose place another
// has is not.
func TestConfirm(t *testing.T) {
	a, b := newStation(t), newStation(t)
	ep := reach(t, a, b, a, b).(*Endpoint)
	for n := range uint64(rounds) {
		if n%2 == 0 {
			if err := ep.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if err := ep.Confirm(); !errors.Is(err, hw.ErrNoResource) {
			t.Fatalf("confirmed before the peer was asked: %v", err)
		}
		until(t, "the peer is not confirmed", func() bool { return ep.Confirm() == nil }, a)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = newStation(t)
	if b.addr.id() != ep.addr.id() {
		t.Errorf("the peer after it has the place %#x, not %#x", b.addr.id(), ep.addr.id())
	}
	until(t, "the end is not noticed", func() bool {
		err := ep.Confirm()
		if err == nil {
			t.Fatal("the peer after it is confirmed")
		}
		return errors.Is(err, hw.ErrPeerDead)
	}, a)
	until(t, "the end is not told of", func() bool { return a.gone > 0 }, a)
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

// TestGreetingWhileEnding: a connection is given up, and the peer connects and sends again before its endpoint has
// ended here: every message comes, and an answer to it, and each end is told of once.
func TestGreetingWhileEnding(t *testing.T) {
	a, b := newStation(t), newStation(t)
	given := fmt.Errorf("given up: %w", hw.ErrPeerDead)
	early := 0
	for n := range uint64(rounds) {
		say(t, reach(t, b, a, a, b), n, a, a, b)
		e := reach(t, a, b, a, b).(*Endpoint)
		say(t, e, n, b, a, b)
		other := b.ids.Load().find(a.addr.id())
		e.end(given)
		a.Progress(0) // the peer is told
		until(t, "the peer is not told", other.Reported, b)
		// The other side still ends while the next greeting is on its way.
		next := reach(t, b, a, b)
		if next.AMShort(1, n+rounds, nil, nil) != nil {
			t.Fatal("there is no room for a message")
		}
		if !e.Reported() {
			early++
		}
		until(t, fmt.Sprintf("message %d does not come", n+rounds),
			func() bool { return a.got[len(a.got)-1] == n+rounds }, a, b)
		until(t, "the end is not told of", e.Reported, a, b)
	}
	if early < rounds/2 {
		t.Errorf("%d of %d greetings came while the endpoint was ending", early, rounds)
	}
	if len(a.got) != 2*rounds || len(b.got) != rounds {
		t.Errorf("%d and %d messages came, of %d and %d", len(a.got), len(b.got), 2*rounds, rounds)
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}
