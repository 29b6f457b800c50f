package cxi

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// TestMatchRefused: what is not valid is refused, and says why.
func TestMatchRefused(t *testing.T) {
	x := newMatching(t, MatchConfig{Sends: 8}, 1<<16)
	stranger := hw.Segment{Addr: addressPointer(make([]byte, 4096)), Len: 4096, Memory: x.memory}
	for name, err := range map[string]error{
		"name":    func() error { _, err := x.m.ParseMatchName([]byte{1, 2, 3}); return err }(),
		"tag":     x.m.PostMatched(&hw.MatchSend{To: x.self, Tagged: true, Tag: 1 << 48}),
		"address": x.m.PostMatched(&hw.MatchSend{To: 5}),
		"memory":  x.m.PostMatched(&hw.MatchSend{To: x.self, Local: stranger}),
		"both":    x.m.PostMatched(&hw.MatchSend{To: x.self, Local: x.at(0, 8), Inject: []byte{1}}),
		"tag of a receive": func() error {
			_, err := x.m.PostReceive(&hw.MatchReceive{Tagged: true,
				Ignore: 1 << 50})
			return err
		}(),
		"sender": func() error { _, err := x.m.PostReceive(&hw.MatchReceive{From: 5}); return err }(),
		"tagged of many": func() error {
			_, err := x.m.PostReceive(&hw.MatchReceive{From: x.self, Tagged: true, Multi: true, Local: x.at(0, 8)})
			return err
		}(),
		"search": x.m.Search(&hw.MatchReceive{From: 5}),
	} {
		if !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := x.m.PostMatched(&hw.MatchSend{To: x.self, Inject: make([]byte, 193)}); !errors.Is(err, hw.ErrTooLong) {
		t.Errorf("inject: %v", err)
	}
	full := 0
	for ; full < 100; full++ {
		if err := x.m.PostMatched(&hw.MatchSend{To: x.self, Inject: []byte{1}, More: true}); err != nil {
			if !errors.Is(err, hw.ErrNoResource) {
				t.Error(err)
			}
			break
		}
	}
	if full != 8 {
		t.Errorf("%d messages in flight, of 8", full)
	}
	x.m.RingMatched()
	for range full {
		x.receive(hw.MatchReceive{From: x.self, Local: x.at(0, 1)})
	}
	await(x, x, 16, 16)
	x.clear()
	gone := hw.MatchAddress(uint64(x.self) ^ 1<<8) // another PID
	x.send(hw.MatchSend{To: gone, Inject: []byte{1}})
	await(x, x, 1, 1)
	if err := x.events[0].Err; !errors.Is(err, hw.ErrPeerDead) {
		t.Errorf("to an endpoint that is not there: %v", err)
	}
}

// TestMatchFaults has the NIC refuse each command of a receive and a message once: both end, or wait on, and what is
// posted next works.
func TestMatchFaults(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1")
		return
	}
	x := newMatching(t, MatchConfig{}, 1<<17)
	failed := 0
	for _, n := range []int{0, 8, 1000, 50000} {
		for at := 1; at <= 4; at++ {
			x.clear()
			var id hw.MatchID
			refuseNext(t, at, func() {
				id = x.receive(hw.MatchReceive{From: x.self, Local: x.at(1<<16, n), Context: 1})
				x.send(hw.MatchSend{To: x.self, Local: x.at(0, n), Context: 2})
				await(x, x, 1, 1)
			})
			for end := time.Now().Add(time.Millisecond); time.Now().Before(end); x.i.Progress(8) {
			}
			var sent, received, sendFailed, receiveFailed bool
			for _, e := range x.events {
				sent, sendFailed = sent || e.Context == 2, sendFailed || e.Context == 2 && e.Err != nil
				received, receiveFailed = received || e.Context == 1, receiveFailed || e.Context == 1 && e.Err != nil
			}
			x.clear()
			switch {
			case sendFailed && !received: // it waits on
				failed++
				if err := x.m.CancelReceive(id); err != nil {
					t.Fatal(err)
				}
				await(x, x, 1, 1)
			case receiveFailed && !sendFailed: // the message waits
				failed++
				x.receive(hw.MatchReceive{From: x.self, Local: x.at(1<<16, n)})
				want := 2
				if sent {
					want = 1
				}
				await(x, x, want, want)
			case sendFailed || receiveFailed || !sent || !received:
				if !sendFailed || !receiveFailed {
					t.Fatalf("%d bytes, command %d: sent %v, received %v, failed %v %v", n, at, sent, received,
						sendFailed, receiveFailed)
				}
			}
			x.clear()
			x.receive(hw.MatchReceive{From: x.self, Tagged: true, Tag: 9})
			x.send(hw.MatchSend{To: x.self, Tagged: true, Tag: 9})
			await(x, x, 2, 2)
			for _, e := range x.events {
				if e.Err != nil {
					t.Errorf("%d bytes, behind command %d: %+v", n, at, e)
				}
			}
		}
	}
	if failed < 8 {
		t.Errorf("%d commands were refused", failed)
	}
}

// TestMatchEntries: receives that the NIC has no entry for get their turn when it has, in their order.
func TestMatchEntries(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "les=40")
		return
	}
	a := newMatching(t, MatchConfig{Buffers: 2}, 1<<12)
	for k := range 64 {
		a.receive(hw.MatchReceive{From: hw.AnyAddress, Local: a.at(k*8, 8), Context: uint64(k), More: k%3 != 0})
	}
	a.m.RingMatched()
	for k := range 64 {
		a.clear()
		a.send(hw.MatchSend{To: a.self, Inject: []byte{byte(k)}, Context: 1000})
		await(a, a, 2, 2)
		for _, e := range a.events {
			if e.Err != nil || e.Kind == hw.MatchReceived && (e.Context != uint64(k) || a.b[k*8] != byte(k)) {
				t.Fatalf("message %d: %+v", k, e)
			}
		}
	}
}
