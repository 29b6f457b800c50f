package cxi

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/seam"
	"github.com/weft-fabric/weft/hw/internal/drive"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestMatchQuiet: a poll finds nothing to do at an interface that matches only while progress has nothing to do.
func TestMatchQuiet(t *testing.T) {
	if !seam.Possible() {
		t.Skip("C calls no Go code without the runtime here")
	}
	a, b := newMatching(t, MatchConfig{}, 4096), newMatching(t, MatchConfig{}, 4096)
	quiet := func(x *matching) bool { return x.i.driver.transport.At(0).Watch.Calm() }
	rest := func(what string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !quiet(a) || !quiet(b); {
			if a.i.Progress(8); b.i.Progress(8)+a.i.Progress(8) == 0 && time.Now().After(end) {
				t.Fatalf("%s: there always is something to do", what)
			}
		}
		if n := drive.Polls(b.i.HotTransport(), 3); n != 3 {
			t.Errorf("%s: %d of 3 polls find nothing", what, n)
		}
	}
	hasWork := func(what string, x *matching) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); quiet(x); time.Sleep(10 * time.Microsecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: nothing to do", what)
			}
		}
		if _, found := drive.Next(x.i.HotTransport()); found != hot.TransportGo {
			t.Errorf("%s: a poll finds %d", what, found)
		}
	}
	rest("at first")
	message := hw.MatchSend{To: b.self, Tagged: true, Tag: 1, Local: a.at(0, 8)}
	a.send(message)
	hasWork("an unexpected message", b)
	hasWork("a message that has ended", a)
	rest("taken in")
	id := b.receive(hw.MatchReceive{From: hw.AnyAddress, Tagged: true, Tag: 2, Local: b.at(0, 8)})
	rest("a receive that waits")
	if err := b.m.CancelReceive(id); err != nil {
		t.Fatal(err)
	}
	hasWork("a cancelled receive", b)
	rest("cancelled")
	if err := b.m.Search(&hw.MatchReceive{From: hw.AnyAddress, Tagged: true, Tag: 1}); err != nil {
		t.Fatal(err)
	}
	hasWork("a search", b)
	rest("found")
	message.More = true
	a.send(message)
	hasWork("a command without a doorbell", a)
	rest("rung for")
	b.receive(hw.MatchReceive{From: hw.AnyAddress, Tagged: true, Tag: 3, Local: b.at(0, 8), More: true})
	hasWork("an append without a doorbell", b)
	rest("rung for, too")
	for what, word := range map[string]*atomic.Bool{
		"later": &b.i.match.rx.later, "retries": &b.i.match.rx.retries, "matched by software": &b.i.match.rx.soft.local,
		"ended": &b.i.match.shared.ended,
	} {
		word.Store(true)
		hasWork(what, b)
		word.Store(false)
		rest(what)
	}
	b.i.match.shared.controls.Add(1)
	hasWork("control messages", b)
	b.i.match.shared.controls.Add(-1)
	rest("no control messages")
}
