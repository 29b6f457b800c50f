package cxi

import (
	"testing"

	"github.com/weft-fabric/weft/hw/cxi/internal/seam"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestAlone: a thread that is alone posts messages and receives, and takes in what becomes of them, whoever has the
// locks; any other leaves that to Go. Events go round more often than a quarter of their queue has room for, so that
// the NIC is written how far they are read.
func TestAlone(t *testing.T) {
	if !seam.Possible() {
		t.Skip("C calls no Go code without the runtime here")
	}
	small := MatchConfig{Sends: 8, Events: 64}
	a, b := drivenBy(t, newMatching(t, small, 4096)), drivenBy(t, newMatching(t, small, 4096))
	gate := new(hot.Gate)
	for _, x := range []*drivenMatching{a, b} {
		x.i.Alone(gate.Word())
	}
	receive := hot.MatchPost{Kind: hot.MatchReceive | hot.MatchAny}
	message := hot.MatchPost{Peer: uint64(b.self)}
	tx, rx := &a.i.match.tx, &b.i.match.rx
	locks := []*queueLock{&tx.lock.spin, &rx.lock.spin}
	words := []*uint32{tx.events.Lock(), rx.events.Lock()}
	held := func(what string, value uint32) {
		for _, l := range locks {
			l.taken = value
		}
		for _, w := range words {
			*w = value
		}
	}
	held("by another thread", 1)
	if said := a.give(message, 0, 8, true); said != hot.PathGo {
		t.Errorf("a message of a thread that is not alone: %d", said)
	}
	if said := b.give(receive, 0, 8, false); said != hot.PathGo {
		t.Errorf("its receive: %d", said)
	}
	if !gate.Enter() {
		t.Fatal("the gate is closed")
	}
	for round := range len(rx.events.memory)/64 + 10 {
		held("by another thread", 1)
		message.Context, receive.Context = uint64(round)<<1, uint64(round)<<1|1
		if round%3 == 0 {
			message.Kind |= hot.MatchMore
		}
		if said := b.give(receive, 0, 8, false); said != hot.PathSent {
			t.Fatalf("receive %d: %d", round, said)
		}
		if said := a.give(message, 0, 8, true); said != hot.PathSent {
			t.Fatalf("message %d: %d", round, said)
		}
		if message.Kind&hot.MatchMore != 0 {
			a.i.match.RingMatched()
			message.Kind &^= hot.MatchMore
		}
		held("by another thread", 1)
		for _, x := range []*drivenMatching{a, b} {
			want := message.Context
			if x == b {
				want = receive.Context
			}
			if found := x.next(); found != hot.TransportMatched || x.ev.Context != want {
				t.Fatalf("round %d: %d, context %d, not %d", round, found, x.ev.Context, want)
			}
		}
	}
	held("by no thread", 0)
	gate.Leave()
}
