package cxi

import (
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
)

// allCome waits until a queue has so many events of so many bytes each.
func allCome(t *testing.T, q *eventQueue, count int, bytes uint64) {
	t.Helper()
	until(t, "not all events have come", func() bool {
		next, event := q.Next()
		last := uintptr(*next + uint64(count-1)*bytes)
		return *(*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&last)))&event != 0
	})
}

// TestMatchDrivenTurns: polls take turns at the queues that have events.
func TestMatchDrivenTurns(t *testing.T) {
	const count = 3
	x := newDrivenMatching(t, 4096)
	for k := range uint64(count) {
		x.give(hot.MatchPost{Tag: k, Kind: hot.MatchReceive | hot.MatchTagged | hot.MatchAny}, 0, 64, false)
		x.give(hot.MatchPost{Peer: uint64(x.self), Tag: k, Kind: hot.MatchTagged}, 0, 8, true)
	}
	m := x.i.match
	allCome(t, &m.txOf(x.self).events, count, 16)
	allCome(t, &m.rx.events, count, 64)
	last := ^uint32(0)
	for n := range 2 * count {
		if x.i.driver.transport.At(0).Watch.Calm() {
			t.Fatalf("event %d is not found", n)
		}
		found := x.next()
		if kind := x.ev.Flags & hot.MatchReceive; found != hot.TransportMatched || kind == last {
			t.Fatalf("event %d: %d, of the queue of the one before: %v", n, found, kind == last)
		}
		last = x.ev.Flags & hot.MatchReceive
	}
}

// TestMatchDrivenExpects: a poll that has found an event knows whether another is behind it, of messages and of
// receives.
func TestMatchDrivenExpects(t *testing.T) {
	const count = 3
	a, b := newDrivenMatching(t, 4096), newDrivenMatching(t, 4096)
	for k := range uint64(count) {
		b.give(hot.MatchPost{Tag: k, Kind: hot.MatchReceive | hot.MatchTagged | hot.MatchAny}, 0, 64, false)
	}
	for k := range uint64(count) {
		a.give(hot.MatchPost{Peer: uint64(b.self), Tag: k, Kind: hot.MatchTagged}, 0, 8, true)
	}
	m := a.i.match
	for _, x := range []struct {
		*drivenMatching
		events *eventQueue
		bytes  uint64 // of an event
	}{{a, &m.txOf(b.self).events, 16}, {b, &b.i.match.rx.events, 64}} {
		watch := &x.i.driver.transport.At(0).Watch
		allCome(t, x.events, count, x.bytes)
		for k := range count {
			if found := x.next(); found != hot.TransportMatched || watch.Expects() != (k < count-1) {
				t.Errorf("event %d: %d, another is expected: %v", k, found, watch.Expects())
			}
		}
	}
}
