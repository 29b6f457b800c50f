package cxi

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/race"
)

// TestSoftMany: 100,000 receives that wait, or messages, each get theirs, and finding it takes a few steps however many
// there are. With the race detector, for which one thread does it all, there are 10,000.
func TestSoftMany(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		t.Log(alone(t, "fabric=-1"))
		return
	}
	count := 100_000
	if race.Enabled {
		count = 10_000
	}
	a := newMatching(t, MatchConfig{}, 4096)
	b := newMatching(t, MatchConfig{Mode: MatchSoftware, Receives: count + 8}, 4096)
	ended, received := 0, 0
	a.m.OnMatch(func(e *hw.MatchEvent) { ended++ })
	b.m.OnMatch(func(e *hw.MatchEvent) {
		if e.Tag != e.Context || e.Err != nil {
			t.Fatalf("%+v", *e)
		}
		received++
	})
	// tag is that of message k: the receives are posted in another order.
	tag := func(k int) uint64 { return uint64(k * 7919 % count) }
	send := func() {
		for k := range count {
			a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: tag(k), Inject: []byte{1}})
			if k%64 == 0 {
				b.i.Progress(1000)
			}
		}
	}
	receive := func() {
		for k := range count {
			r := hw.MatchReceive{From: hw.AnyAddress, Tagged: true, Tag: uint64(k), Context: uint64(k)}
			if k%2 == 0 {
				r.From = a.self
			}
			b.receive(r)
			if k%64 == 0 {
				b.i.Progress(1000)
			}
		}
	}
	for _, posted := range []bool{true, false} {
		ended, received = 0, 0
		e := b.i.match.rx.soft.engine(true)
		before := e.Steps()
		if posted {
			receive()
			send()
		} else {
			send()
			for ended < count {
				a.i.Progress(64)
				b.i.Progress(64)
			}
			if n := b.i.match.rx.soft.count(); n != count {
				t.Fatalf("%d unexpected messages", n)
			}
			receive()
		}
		for received < count || ended < count {
			a.i.Progress(64)
			b.i.Progress(64)
		}
		if n := e.Steps() - before; n > 4*uint64(count) {
			t.Errorf("posted before %v: %d steps for %d messages", posted, n, count)
		}
	}
}

// TestTakenOverMemory: the bytes of messages that are taken over lie off the Go heap, and are given back when they have
// been delivered.
func TestTakenOverMemory(t *testing.T) {
	const count, size = 300, 8000
	a := newMatching(t, MatchConfig{Sends: count}, size)
	b := newMatching(t, MatchConfig{Buffers: 2, BufferBytes: 40 * size}, size)
	for range count {
		a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: 1, Local: a.at(0, size)})
	}
	q, most := &b.i.match.rx.soft, 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for end := time.Now().Add(60 * time.Second); len(b.events) < count; most = max(most, q.pool.Used()) {
		r := hw.MatchReceive{From: hw.AnyAddress, Tagged: true, Tag: 1, Local: b.at(0, size)}
		_, err := b.m.PostReceive(&r)
		if err != nil && !errors.Is(err, hw.ErrNoResource) || time.Now().After(end) {
			t.Fatalf("%d messages, %v", len(b.events), err)
		}
		a.i.Progress(64)
		b.i.Progress(64)
	}
	runtime.ReadMemStats(&after)
	took, over := after.TotalAlloc-before.TotalAlloc, b.stats().Onloaded
	t.Logf("%d messages are taken over, %d bytes of theirs at once, %d bytes allocated", over, most, took)
	if over < 40 || most < 20*size || took > over*size/2 || q.pool.Used() != 0 {
		t.Errorf("%d bytes of messages are left", q.pool.Used())
	}
}
