package cxi

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// shared posts an operation with a shared context, 0: a write of n bytes, 1: a sum of one, at an offset of a region of
// b's.
func (a *matching) shared(b *matching, key, context, offset uint64, n int) error {
	if context == 0 {
		return a.m.(hw.MemoryMatcher).PostTransfer(&hw.MatchTransfer{To: b.self, Key: key, Offset: offset,
			Inject: bytes.Repeat([]byte{1}, n), Shared: true, More: true})
	}
	return a.m.(hw.AtomicMatcher).PostAtomic(&hw.MatchAtomic{To: b.self, Key: key, Offset: offset, Op: hw.MatchSum,
		Type: hw.MatchUint8, Operand: element{1}, Shared: true, Context: context, More: true})
}

// TestShared: writes and atomic operations with shared contexts take no place where they go with the command, are
// bounded as if they did, are answered each with its bytes, and those that fail with an error.
func TestShared(t *testing.T) {
	const sends, size = 32, 4096
	a, b := newMatching(t, MatchConfig{Sends: sends}, size), newMatching(t, MatchConfig{}, size)
	for _, key := range []uint64{7, 1000} { // of an index of its own, and of none
		b.expose(key, hw.RemoteRead|hw.RemoteWrite)
		a.clear()
		clear(b.b)
		tx := a.i.match.txOf(b.self)
		free, posted := len(tx.free), [hw.SharedContexts]int{}
		for k := uint64(0); ; k++ {
			err := a.shared(b, key, k%2, 100*(k%2), 8)
			if errors.Is(err, hw.ErrNoResource) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			posted[k%2]++
		}
		if posted[0]+posted[1] != sends {
			t.Errorf("key %d: %v are under way, not %d", key, posted, sends)
		}
		if (len(tx.free) == free) != (key == 7) {
			t.Errorf("key %d: %d of %d places are free", key, len(tx.free), free)
		}
		if !a.m.(hw.MemoryMatcher).SharedUnderway(b.self) && key == 7 {
			t.Error("none is under way")
		}
		a.m.RingMatched()
		await(a, a, sends, sends)
		var ended, length [hw.SharedContexts]uint64
		for _, e := range a.events {
			if e.Kind != hw.MatchTransferred || !e.Shared || !e.Last || e.Err != nil {
				t.Errorf("key %d: %+v", key, e)
			}
			ended[e.Context]++
			length[e.Context] += e.Length
		}
		if ended[0] != uint64(posted[0]) || length[0] != 8*ended[0] || length[1] != ended[1] ||
			!bytes.Equal(b.b[:8], bytes.Repeat([]byte{1}, 8)) || int(b.b[100]) != posted[1] {
			t.Errorf("key %d: %v of %v have ended, with %v bytes; the sum is %d", key, ended, posted, length,
				b.b[100])
		}
		if a.m.(hw.MemoryMatcher).SharedUnderway(b.self) || tx.inFlight() != 0 {
			t.Error("some are under way")
		}
		for context := range uint64(2) {
			a.clear()
			if err := a.shared(b, key, context, size, 8); err != nil { // behind the end
				t.Fatal(err)
			}
			a.m.RingMatched()
			await(a, a, 1, 1)
			if e := a.events[0]; !e.Shared || e.Context != context || e.Err == nil {
				t.Errorf("behind the end: %+v", e)
			}
		}
	}
	works(t, a, b)
}

// TestSharedState: one state stands before all that have the same context.
func TestSharedState(t *testing.T) {
	a, b := newMatching(t, MatchConfig{}, 4096), newMatching(t, MatchConfig{}, 4096)
	b.expose(7, hw.RemoteRead|hw.RemoteWrite)
	q := &a.i.match.txOf(b.self).q
	const count = 10
	bytesOf := func(post func()) uint32 {
		begun := q.Slot()
		post()
		return 64 * (q.Slot() - begun)
	}
	named := bytesOf(func() {
		for range count {
			write := hw.MatchTransfer{To: b.self, Key: 7, Inject: []byte{1}}
			if err := a.m.(hw.MemoryMatcher).PostTransfer(&write); err != nil {
				t.Fatal(err)
			}
		}
	})
	shared := bytesOf(func() {
		for range count {
			if err := a.shared(b, 7, 0, 0, 1); err != nil {
				t.Fatal(err)
			}
		}
	})
	if shared > 64+32*count || named < 64*(count-1) {
		t.Errorf("%d bytes of commands, %d of those with contexts of their own", shared, named)
	}
	a.m.RingMatched()
	await(a, a, 2*count, 2*count)
}

// TestSharedRefused: one of those with shared contexts is refused, or the state before them; as many end with an error
// as were concerned, and each ends.
func TestSharedRefused(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1 lcids=1") // so that commands to change the profile are none
		return
	}
	const key, count = 7, 9
	a, b := newMatching(t, MatchConfig{}, 4096), newMatching(t, MatchConfig{}, 4096)
	b.expose(key, hw.RemoteRead|hw.RemoteWrite)
	for context := range uint64(2) {
		for at := range count + 1 { // the first is the state
			b.receive(hw.MatchReceive{From: a.self, Local: b.at(8, 1)})
			a.clear()
			b.clear()
			a.send(hw.MatchSend{To: b.self, Inject: []byte{1}}) // the state is that of messages
			await(a, b, 1, 1)
			a.clear()
			b.b[0] = 0
			refuseNext(t, at+1, func() {
				for range count {
					if err := a.shared(b, key, context, 0, 1); err != nil {
						t.Fatal(err)
					}
				}
				a.m.RingMatched()
				await(a, a, count, count)
			})
			failed := 0
			for _, e := range a.events {
				if e.Err != nil {
					failed++
				}
				if !e.Shared || e.Context != context || e.Err != nil && !errors.Is(e.Err, unix.EIO) {
					t.Errorf("command %d: %+v", at, e)
				}
			}
			if want := 1; at > 0 && failed != want || at == 0 && failed != count {
				t.Errorf("command %d: %d of %d failed", at, failed, count)
			}
			if at > 0 && context == 1 && b.b[0] != count-1 {
				t.Errorf("command %d: the sum is %d", at, b.b[0])
			}
			works(t, a, b)
		}
	}
}

// TestSharedOverrun: where events were dropped each of those under way ends once, and those of later are not concerned.
func TestSharedOverrun(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1")
		return
	}
	const key, sends = 7, 8
	a, b := newMatching(t, MatchConfig{Sends: sends}, 4096), newMatching(t, MatchConfig{}, 4096)
	h := newMatching(t, MatchConfig{}, 8)
	b.expose(key, hw.RemoteRead|hw.RemoteWrite)
	h.flood(a, 400)
	a.clear()
	for range sends {
		if err := a.shared(b, key, 0, 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	a.m.RingMatched()
	await(a, a, sends, sends)
	failed := 0
	for _, e := range a.events {
		if e.Err != nil {
			failed++
		}
		if e.Err != nil && !errors.Is(e.Err, unix.EIO) {
			t.Errorf("%+v", e)
		}
	}
	if failed == 0 || a.stats().Overruns != 1 || a.i.match.txOf(b.self).inFlight() != 0 {
		t.Errorf("%d of %d failed, %d overruns", failed, sends, a.stats().Overruns)
	}
	works(t, a, b)
}

// TestSharedRefusedDoubtful: one that is refused while earlier ones are doubtful, as events were dropped, ends, and so
// do those.
func TestSharedRefusedDoubtful(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1 lcids=1") // so that commands to change the profile are none
		return
	}
	const key, count = 7, 6
	a, b := newMatching(t, MatchConfig{Sends: count + 2}, 4096), newMatching(t, MatchConfig{}, 4096)
	h := newMatching(t, MatchConfig{}, 8)
	b.expose(key, hw.RemoteRead|hw.RemoteWrite)
	a.clear()
	h.flood(a, 400)
	progress := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(5 * time.Second); !done(); a.i.Progress(64) {
			if time.Now().After(end) {
				t.Fatalf("%s: %+v, %+v", what, a.events, a.stats())
			}
		}
	}
	for range count {
		if err := a.shared(b, key, 0, 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	a.m.RingMatched()
	progress("overrun", func() bool { return a.stats().Overruns == 1 })
	tx := a.i.match.txOf(b.self)
	if tx.shared.doubtful.sum() == 0 {
		t.Fatal("none is doubtful")
	}
	refuseNext(t, 2, func() { // behind the state
		if err := a.shared(b, key, 0, 0, 1); err != nil {
			t.Fatal(err)
		}
		a.m.RingMatched()
		progress("refusal", func() bool { return a.stats().Refused == 1 })
	})
	progress("all", func() bool { return len(a.events) == count+1 })
	if tx.inFlight() != 0 {
		t.Errorf("%d are under way", tx.inFlight())
	}
	works(t, a, b)
}

// TestSharedDriven: C posts them and takes in their ends.
func TestSharedDriven(t *testing.T) {
	a, b := newDrivenMatching(t, 4096), newDrivenMatching(t, 4096)
	b.expose(7, hw.RemoteRead|hw.RemoteWrite)
	a.b[0] = 1
	for k := range 1000 {
		p := hot.MatchPost{Peer: uint64(b.self), Tag: 7, Kind: hot.MatchWrite | hot.MatchShared}
		n := k%192 + 1
		if k%2 == 1 {
			n, p.Context = 1, 1
			p.Kind = hot.MatchAtomic | hot.MatchShared
			p.Op = uint32(hw.MatchSum) | uint32(hw.MatchUint8)<<hot.MatchTypeShift
		}
		if said := a.give(p, 0, n, true); said != hot.PathSent {
			t.Fatalf("operation %d: %d", k, said)
		}
		want := hot.MatchEvent{Context: p.Context, Length: uint64(n), Flags: hot.MatchShared}
		if found := a.next(); found != hot.TransportMatched || *a.ev != want {
			t.Fatalf("operation %d: %d, %+v, not %+v", k, found, *a.ev, want)
		}
	}
	if tx := a.i.match.txOf(b.self); tx.inFlight() != 0 || len(a.events) != 0 {
		t.Errorf("%d are in flight, %d events of Progress", tx.inFlight(), len(a.events))
	}
}
