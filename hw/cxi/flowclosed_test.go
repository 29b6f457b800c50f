package cxi

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// TestFlowClosed: sends to a receiver that is closed while it takes no messages end, whether their drops were notified
// of before, whether it has read the notice, or not.
func TestFlowClosed(t *testing.T) {
	for name, c := range map[string]struct{ unread, late bool }{
		"the notices are read":               {},
		"they are not":                       {unread: true},
		"one sender notices its drops later": {late: true},
	} {
		t.Run(name, func(t *testing.T) { flowClosed(t, c.unread, c.late) })
	}
}

func flowClosed(t *testing.T, unread, late bool) {
	const sends, bytes = 20, 5000
	b := newMatching(t, MatchConfig{Buffers: 2, BufferBytes: 40000}, 8)
	senders := []*matching{newMatching(t, MatchConfig{}, bytes), newMatching(t, MatchConfig{}, bytes)}
	for range sends {
		for _, x := range senders {
			x.send(hw.MatchSend{To: b.self, Tagged: true, Local: x.at(0, bytes)})
		}
	}
	polling := senders
	if late {
		polling = senders[:1]
	}
	waits := func(x *matching) bool {
		f := x.i.match.tx.full[b.self]
		return f != nil && f.underway == 0
	}
	notified := &b.i.match.rx.flow.core.notified
	for end := time.Now().Add(20 * time.Second); ; {
		for _, x := range polling {
			x.i.Progress(16)
		}
		if !unread {
			b.i.Progress(16)
		}
		if waits(polling[0]) && waits(polling[len(polling)-1]) && (unread || len(*notified) == len(polling)) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the receiver is in state %d, %d senders have notified", b.i.match.rx.flow.state(), len(*notified))
		}
	}
	if err := b.i.Close(); err != nil {
		t.Fatal(err)
	}
	for _, x := range senders {
		failed := 0
		for end := time.Now().Add(20 * time.Second); len(x.events) < sends; x.i.Progress(16) {
			if time.Now().After(end) {
				t.Fatalf("%d sends of %d have ended", len(x.events), sends)
			}
		}
		for _, e := range x.events {
			if errors.Is(e.Err, hw.ErrPeerDead) {
				failed++
			} else if e.Err != nil {
				t.Errorf("%+v", e)
			}
		}
		if failed == 0 || len(x.i.match.tx.full) != 0 {
			t.Errorf("%d sends have failed", failed)
		}
	}
}
