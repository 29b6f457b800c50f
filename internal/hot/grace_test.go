package hot

import "testing"

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
	list[1].Posting += 2 // finished, and posts again
	if !g.Over() {
		t.Error("none of them is posting")
	}
}
