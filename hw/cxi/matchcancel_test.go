package cxi

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// TestMatchCancelMatched: a receive of many messages that is cancelled right after it got messages that waited has them
// before it ends, also those whose data is still to come, and its id serves again.
func TestMatchCancelMatched(t *testing.T) {
	const size = 1 << 16
	a := newMatching(t, MatchConfig{}, size)
	b := newMatching(t, MatchConfig{Mode: MatchSoftware, Receives: 1}, size)
	for round := range 3 {
		for k, n := range []int{1000, 20000, 8, 500}[:2+round] {
			a.send(hw.MatchSend{To: b.self, Data: uint64(k), HasData: true, Local: a.at(0, n)})
		}
		kept := 0
		for end := time.Now().Add(time.Minute); kept < 2+round && time.Now().Before(end); a.i.Progress(8) {
			b.i.Progress(8)
			rx := &b.i.match.rx
			rx.lock.take()
			kept = rx.soft.count()
			rx.lock.give()
		}
		id := b.receive(hw.MatchReceive{From: hw.AnyAddress, Local: b.at(0, size), Multi: true, MinFree: 100,
			Context: uint64(round)})
		if err := b.m.CancelReceive(id); err != nil {
			t.Fatal(err)
		}
		await(a, b, 2+round, 3+round)
		for k, e := range b.events {
			last := k == 2+round
			if e.Context != uint64(round) || e.Last != last || last != (e.Kind == hw.MatchCanceled) ||
				!last && e.Err != nil {
				t.Errorf("round %d, event %d: %+v", round, k, e)
			}
		}
		a.clear()
		b.clear()
	}
	b.receive(hw.MatchReceive{From: hw.AnyAddress, Tagged: true, Tag: 1, Local: b.at(0, 8)})
	a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: 1, Local: a.at(0, 8)})
	await(a, b, 1, 1)
}
