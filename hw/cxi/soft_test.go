package cxi

import (
	"os"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// TestSoftMany: 100,000 receives that wait, or messages, each get theirs, and finding it takes a few steps however many
// there are.
func TestSoftMany(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		t.Log(alone(t, "fabric=-1"))
		return
	}
	const count = 100_000
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
	tag := func(k int) uint64 { return uint64(k*7919) % count }
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
		if n := e.Steps() - before; n > 4*count {
			t.Errorf("posted before %v: %d steps for %d messages", posted, n, count)
		}
	}
}
