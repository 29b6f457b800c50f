package cxi

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// untilPosted posts, again and again as long as there is no room.
func untilPosted(t *testing.T, what string, post func() error) bool {
	for end := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
		err := post()
		if err == nil {
			return true
		}
		if !errors.Is(err, hw.ErrNoResource) || time.Now().After(end) {
			t.Errorf("%s: %v", what, err)
			return false
		}
	}
}

// TestMatchTogether: threads that post messages, receives, writes and cancels beside one that makes progress, and one
// that reads the counters: every message finds its receive, in the order of its sender's thread.
func TestMatchTogether(t *testing.T) {
	const threads, count, most = 3, 100, 2048
	a := newMatching(t, MatchConfig{Sends: 64}, threads*most)
	b := newMatching(t, MatchConfig{}, threads*most)
	b.expose(7, hw.RemoteWrite)
	var ended atomic.Int64
	canceled := 0
	a.m.OnMatch(func(e *hw.MatchEvent) {
		ended.Add(1)
		if e.Err != nil {
			t.Errorf("sender: %+v", *e)
		}
	})
	b.m.OnMatch(func(e *hw.MatchEvent) {
		switch {
		case e.Kind == hw.MatchCanceled && e.Context == 1<<20:
			canceled++
		case e.Err != nil || e.Tag >= threads || e.Data != e.Context:
			t.Errorf("receiver: %+v", *e)
		}
		ended.Add(1)
	})
	var posters sync.WaitGroup
	for k := range threads {
		lengths := []int{0, 8, 192, 193, most}
		posters.Go(func() {
			for n := range uint64(count) {
				s := hw.MatchSend{To: b.self, Tagged: true, Tag: uint64(k), Data: n, HasData: true,
					Local: a.at(k*most, lengths[n%5]), Matched: n%7 == 0, More: n%3 == 0, Context: n}
				if !untilPosted(t, "message", func() error { return a.m.PostMatched(&s) }) {
					return
				}
			}
			a.m.RingMatched()
		})
		posters.Go(func() {
			for n := range uint64(count) {
				r := hw.MatchReceive{From: a.self, Tagged: true, Tag: uint64(k), Local: b.at(k*most, most),
					More: n%4 == 0, Context: n}
				if !untilPosted(t, "receive", func() error { _, err := b.m.PostReceive(&r); return err }) {
					return
				}
			}
			b.m.RingMatched()
		})
	}
	posters.Go(func() {
		for range count / 10 {
			r := hw.MatchReceive{From: a.self, Tagged: true, Tag: 99, Context: 1 << 20}
			var id hw.MatchID
			if !untilPosted(t, "receive", func() (err error) { id, err = b.m.PostReceive(&r); return err }) ||
				!untilPosted(t, "cancel", func() error { return b.m.CancelReceive(id) }) {
				return
			}
			w := hw.MatchTransfer{To: b.self, Key: 7, Inject: []byte{1, 2, 3}}
			untilPosted(t, "write", func() error { return a.i.match.PostTransfer(&w) })
		}
	})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_, _, _ = a.stats(), b.stats(), b.i.Pending()
				runtime.Gosched()
			}
		}
	})
	const all = 2*threads*count + 2*(count/10)
	for end := time.Now().Add(30 * time.Second); ended.Load() < all && time.Now().Before(end) && !t.Failed(); {
		if a.i.Progress(16)+b.i.Progress(16) == 0 {
			runtime.Gosched()
		}
	}
	posters.Wait()
	close(stop)
	readers.Wait()
	if ended.Load() != all || canceled != count/10 {
		t.Errorf("%d of %d have ended, %d are cancelled", ended.Load(), all, canceled)
	}
}
