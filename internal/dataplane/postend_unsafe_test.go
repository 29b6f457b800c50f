package dataplane

import (
	"testing"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
)

// TestPostsKept posts behind completions of posts that are kept off the rings, which have room by now: the post is
// refused, as what it completes must not be read before those.
func TestPostsKept(t *testing.T) {
	l := newLoop(t)
	q := (*hot.CQ)(pointer(l.ep.TxCQ))
	q.PostsKept = 1
	p := l.message(make([]byte, 8), hot.PostTagged, 1, 1)
	if code := send(&p); code != hot.PostAgain || l.thread(stats.ThreadNoCQ) != 1 {
		t.Fatalf("code %d", code)
	}
	q.PostsKept = 0
	if code := send(&p); code != hot.PostDone {
		t.Fatalf("code %d", code)
	}
}
