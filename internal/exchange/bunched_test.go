package exchange

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// wordOf answers what is on its way to a peer.
func wordOf(e *Engine, now congestion.Time, peer int, w Word) {
	w.Got = e.at(int32(peer)).sent
	e.OnWord(now, peer, w)
}

// TestLateWords: a word that comes long after its chunk, with those of chunks that were sent just before, does not make
// the own link seem fast.
func TestLateWords(t *testing.T) {
	const rate = 3e6
	e, now := settle(t, 3, Adaptive, 4<<20)
	e.cfg.Most = 2 // the third waits, so that there is not more than Early of each on its way
	e.rate, e.pooled.rate, e.chunk = rate, rate, 12<<10
	var first, quick int32
	drain(e, now)
	for first = range 3 {
		if e.at(first).flying != 0 {
			break
		}
	}
	step := func(after time.Duration) {
		now = now.Add(after)
		e.Tick(now)
		drain(e, now)
		for quick = range 3 {
			if quick != first && e.at(quick).flying != 0 {
				wordOf(e, now, int(quick), Word{})
				drain(e, now)
				return
			}
		}
	}
	for range 20 {
		step(20 * time.Millisecond)
	}
	wordOf(e, now, int(first), Word{})
	drain(e, now)
	for range 3 {
		step(time.Millisecond)
	}
	if e.rate > 1.5*rate {
		t.Errorf("the link seems to carry %.1f MB/s, want about %.1f", e.rate/1e6, rate/1e6)
	}
}

// TestTogether: a word for all chunks that are on their way lowers what a path is taken to deliver once, not once for
// each chunk.
func TestTogether(t *testing.T) {
	e, now := settle(t, 1, Adaptive, 1<<20)
	e.chunk = 16 << 10
	e.at(0).heard = true
	e.resume()
	if drain(e, now); e.at(0).flying < Early+1 {
		t.Fatalf("%d chunks are on their way", e.at(0).flying)
	}
	before := e.at(0).rate
	wordOf(e, now.Add(time.Second), 0, Word{})
	if after := e.at(0).rate; after < before*0.87 || after >= before {
		t.Errorf("%.2f times the rate before, want 7/8", after/before)
	}
}

// TestFillsSharedLink: a pair that may need relays has as much on its way as ends in half of the time that both hosts
// need, so that it gets its part of a target's link that others fill; little where they are about to end.
func TestFillsSharedLink(t *testing.T) {
	for _, c := range []struct {
		rest, most time.Duration
	}{{400 * time.Millisecond, 200 * time.Millisecond}, {0, 3 * relayedTime}} {
		e, now := slowPath(t, Word{Rested: true, Rest: c.rest})
		drain(e, now)
		p := e.at(2)
		hold := time.Duration(float64(p.sent-p.acked) / p.rate * second)
		if p.left() == 0 || hold > c.most || hold < c.most/3 {
			t.Errorf("hosts need %v: what is on its way takes %v, want up to %v", e.hosts(p), hold, c.most)
		}
	}
}

// TestLateTwice: no relay is asked for a path of which one chunk was slow: where all senders begin at once, each takes
// long at a target whose link they fill.
func TestLateTwice(t *testing.T) {
	e, now := withRelays(t, func(*Config) {})
	e.at(2).rate = 0
	e.Start(now, []int64{10 << 10, 10 << 10, 1 << 20, 10 << 10}, make([]int64, 4))
	for peer := range e.cfg.Peers {
		e.Arrived(now, peer, &Chunk{}, 0, 0, true)
	}
	drain(e, now)
	for chunk := 1; chunk <= 3; chunk++ {
		now = now.Add(300 * time.Millisecond)
		for peer := range e.cfg.Peers {
			if e.at(int32(peer)).flying != 0 {
				wordOf(e, now, peer, Word{Rested: true, Idle: true})
			}
		}
		if asked := e.report.Asked != 0; asked != (chunk > 1) {
			t.Errorf("after %d chunks relays were asked: %v", chunk, asked)
		}
		drain(e, now)
	}
}
