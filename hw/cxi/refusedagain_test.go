package cxi

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
)

// TestMatchRefusedAgain: of messages that a receiver had no room for, and that are written again, one is refused: it
// ends, and all else goes on.
func TestMatchRefusedAgain(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1")
		return
	}
	const count, n = 24, 5000
	failed := 0
	a, b := newMatching(t, MatchConfig{}, count*n), newMatching(t, MatchConfig{Buffers: 2, BufferBytes: 40000}, count*n)
	both := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !done(); {
			a.i.Progress(16)
			b.i.Progress(16)
			if time.Now().After(end) {
				t.Fatalf("%s: %d sends and %d receives have ended", what, len(a.events), len(b.events))
			}
		}
	}
	for at := 1; at <= 2*count; at++ {
		a.clear()
		b.clear()
		for k := range count {
			a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: uint64(k), Local: a.at(k*n, n), Context: uint64(k)})
		}
		both("until there is no room", func() bool { return len(a.i.match.tx.full) != 0 })
		refuseNext(t, at, func() {
			for k := range count {
				b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: uint64(k), Local: b.at(k*n, n),
					Context: uint64(k)})
			}
			both("sends", func() bool { return len(a.events) == count })
		})
		lost := 0
		for _, e := range a.events {
			if e.Err != nil {
				lost++
				if !errors.Is(e.Err, unix.EIO) {
					t.Errorf("command %d: %+v", at, e)
				}
				if err := b.m.CancelContext(e.Context); err != nil {
					t.Fatal(err)
				}
			}
		}
		if failed += lost; lost > 1 {
			t.Errorf("command %d is refused: %d sends end with an error", at, lost)
		}
		both("receives", func() bool { return len(b.events) >= count })
		for _, e := range b.events[:count] {
			if errors.Is(e.Err, unix.EIO) { // the command of the receive is what was refused, and its message waits
				b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: e.Context, Local: b.at(0, n)})
				both("a receive", func() bool { return len(b.events) > count })
			}
		}
	}
	if failed < 4 {
		t.Errorf("%d sends were refused", failed)
	}
	works(t, a, b)
}

// TestMatchRefusedCanceled: a receive that the NIC refuses has been cancelled meanwhile: it ends, once. One whose
// cancelling is refused stays.
func TestMatchRefusedCanceled(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1")
		return
	}
	x := newMatching(t, MatchConfig{Receives: 8}, 4096)
	for at := 1; at <= 2; at++ {
		for range 10 {
			refuseNext(t, at, func() {
				id := x.receive(hw.MatchReceive{From: x.self, Tagged: true, Tag: 5, Local: x.at(0, 8)})
				if err := x.m.CancelReceive(id); err != nil {
					t.Fatal(err)
				}
				for range 10 {
					x.i.Progress(8)
				}
			})
			if at == 2 {
				if len(x.events) != 0 {
					t.Fatalf("a receive whose cancelling is refused: %+v", x.events)
				}
				x.send(hw.MatchSend{To: x.self, Tagged: true, Tag: 5, Inject: []byte{1}})
				await(x, x, 2, 2)
			} else if len(x.events) != 1 || !errors.Is(x.events[0].Err, unix.EIO) {
				t.Fatalf("a refused receive that is cancelled: %+v", x.events)
			}
			x.clear()
		}
	}
	works(t, x, x)
}

// TestMatchRefusedAfterLap: long messages that are acknowledged and wait for their receives have no command that could
// be refused, though the queue has been written anew meanwhile, many times: of what is sent then only the refused one
// ends.
func TestMatchRefusedAfterLap(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1")
		return
	}
	const waiting, n = 8, 40000
	a, b := newMatching(t, MatchConfig{Sends: 16}, waiting*n), newMatching(t, MatchConfig{}, waiting*n)
	for k := range waiting {
		a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: 100, Local: a.at(k*n, n), Context: uint64(1000 + k)})
	}
	for k := range 3000 {
		b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: 1, Local: b.at(0, 1000), Context: 1})
		if k%3 != 2 {
			a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: 1, Local: a.at(0, 1000), Context: 1})
			await(a, b, 1, 1)
		} else {
			refuseNext(t, 1, func() {
				a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: 1, Local: a.at(0, 1000), Context: 1})
				await(a, b, 1, 0)
			})
			if err := b.m.CancelContext(1); err != nil {
				t.Fatal(err)
			}
			await(a, b, 1, 1)
		}
		if len(a.events) != 1 || a.events[0].Context != 1 || (a.events[0].Err != nil) != (k%3 == 2) {
			t.Fatalf("message %d: %+v", k, a.events)
		}
		a.clear()
		b.clear()
	}
	for k := range waiting {
		b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: 100, Local: b.at(k*n, n), Context: uint64(k)})
	}
	await(a, b, waiting, waiting)
	for _, e := range a.events {
		if e.Err != nil {
			t.Errorf("%+v", e)
		}
	}
}
