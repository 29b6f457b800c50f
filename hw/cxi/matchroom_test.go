package cxi

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// TestMatchInlineRoom: more inline writes than the queue has room for are refused until the NIC has taken some, and all
// end.
func TestMatchInlineRoom(t *testing.T) {
	const key, sends, posts = 7, 16, 2000
	a, b := newMatching(t, MatchConfig{Sends: sends}, 4096), newMatching(t, MatchConfig{}, 4096)
	b.expose(key, hw.RemoteWrite)
	m, payload, refused := a.m.(hw.MemoryMatcher), make([]byte, 224), 0
	for k := range posts {
		p := hw.MatchTransfer{To: b.self, Key: key, Inject: payload[:1+k%224], Context: uint64(k), More: true}
		err := m.PostTransfer(&p)
		for ; errors.Is(err, hw.ErrNoResource); err = m.PostTransfer(&p) {
			refused++
			a.m.RingMatched()
			a.i.Progress(64)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a.m.RingMatched()
	await(a, a, posts, posts)
	for _, e := range a.events {
		if e.Err != nil {
			t.Fatalf("%+v", e)
		}
	}
	if len(a.events) != posts || refused == 0 {
		t.Errorf("%d of %d have ended, %d were refused at first", len(a.events), posts, refused)
	}
}
