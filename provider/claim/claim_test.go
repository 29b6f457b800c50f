package claim

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestTakenOnce has two processors take the chunks of rounds: each chunk is taken once.
func TestTakenOnce(t *testing.T) {
	const n = 1000
	for round := range uint64(10) {
		word := Word(round, 0, n)
		var taken [n]atomic.Uint32
		var both sync.WaitGroup
		for _, take := range []func(*uint64, uint64, uint64) (uint64, bool){TakeFront, TakeBack} {
			both.Go(func() {
				for i, ok := take(&word, round, n); ok; i, ok = take(&word, round, n) {
					taken[i].Add(1)
				}
			})
		}
		both.Wait()
		for i := range taken {
			if times := taken[i].Load(); times != 1 {
				t.Fatalf("chunk %d was taken %d times", i, times)
			}
		}
	}
}

// TestForeign holds what is taken of words that are not of the round, or that no opener writes.
func TestForeign(t *testing.T) {
	const n = 4
	for _, w := range []uint64{Word(2, 0, n), Word(1, n, n), Word(1, 3, 2), Word(1, n+1, n+2), ^uint64(0)} {
		front, back := w, w
		if i, ok := TakeFront(&front, 1, n); ok || front != w {
			t.Errorf("%#x: chunk %d from the front", w, i)
		}
		if i, ok := TakeBack(&back, 1, n); ok || back != w {
			t.Errorf("%#x: chunk %d from the back", w, i)
		}
		if i := Stop(&front, 1, n); i > n {
			t.Errorf("%#x: the helper has chunks from %d on", w, i)
		}
	}
}

// TestStop takes the rest of a round from the helper.
func TestStop(t *testing.T) {
	word := Word(1, 0, 4)
	if i, ok := TakeBack(&word, 1, 4); !ok || i != 3 {
		t.Fatalf("the last chunk is %d, %v", i, ok)
	}
	if i := Stop(&word, 1, 4); i != 3 {
		t.Errorf("the helper has chunks from %d on", i)
	}
	if _, ok := TakeBack(&word, 1, 4); ok {
		t.Error("a chunk is taken of a round that has ended")
	}
}

// TestHelper counts in the helper's word: chunks, a failure, and offers, past the ends of their fields.
func TestHelper(t *testing.T) {
	word := uint64(1<<32 - 1)
	if done, _ := Wait(&word, 0, 3); done {
		t.Error("the count has come to what it has not reached")
	}
	Count(&word, false)
	if done, failed := Wait(&word, 0, 1); !done || failed || word != 0 {
		t.Errorf("after the count has wrapped: done %v, failed %v, word %#x", done, failed, word)
	}
	Count(&word, true)
	Count(&word, false)
	if done, failed := Wait(&word, 2, 1); !done || !failed {
		t.Errorf("done %v, failed %v", done, failed)
	}
	for i := range uint16(1 << 15) {
		See(&word)
		if n := Unseen(word, i+1); n != 0 {
			t.Fatalf("%d of %d offers are not seen", n, i+1)
		}
	}
	if n := Unseen(word, 3); n != 3 {
		t.Errorf("%d offers are not seen, want 3", n)
	}
	if done, failed := Wait(&word, 2, 1); !done || !failed {
		t.Error("offers change the count")
	}
}

// TestParts holds the two uses' parts of the shared words apart.
func TestParts(t *testing.T) {
	w := &[4]uint64{1, 2, 3, 4}
	if m, o := MessageWords(w), OneSidedWords(w); m[1] != 2 || o[0] != 3 {
		t.Errorf("parts %v and %v", m, o)
	}
	if MessageWords(nil) != nil || OneSidedWords(nil) != nil {
		t.Error("no words have parts")
	}
	if n := Chunks(9, 4); n != 3 {
		t.Errorf("%d chunks of 4 in 9", n)
	}
}
