package hot

import (
	"sync/atomic"
	"testing"
	"time"
)

// TestGrace waits for those that were posting when it began, and for no others.
func TestGrace(t *testing.T) {
	if !NewGrace().Over() {
		t.Error("without epochReaders")
	}
	list := []*EpochReader{EpochReaderAt(0), EpochReaderAt(1), EpochReaderAt(EpochReaders - 1)}
	defer func() {
		for _, p := range list {
			p.Posting = 0
		}
	}()
	list[0].Posting, list[1].Posting, list[2].Posting = 4, 7, 9
	g := NewGrace()
	list[0].Posting++ // began after it
	if g.Over() {
		t.Error("two are posting")
	}
	list[2].Posting++
	if g.Over() {
		t.Error("one is posting")
	}
	list[1].Posting += 2 // completed, and posts again
	if !g.Over() {
		t.Error("none of them is posting")
	}
}

// TestGraceWait waits for a thread that posts.
func TestGraceWait(t *testing.T) {
	p := EpochReaderAt(0)
	defer atomic.StoreUint64(&p.Posting, 0)
	NewGrace().Wait()
	atomic.StoreUint64(&p.Posting, 1)
	g, over := NewGrace(), make(chan struct{})
	go func() {
		g.Wait()
		close(over)
	}()
	select {
	case <-over:
		t.Error("a thread is posting")
	case <-time.After(10 * time.Millisecond):
	}
	atomic.StoreUint64(&p.Posting, 2)
	<-over
}
