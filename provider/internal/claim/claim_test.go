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
		w := Words{first(round, 0, n)}
		var taken [n]atomic.Uint32
		var both sync.WaitGroup
		for _, take := range []func(uint64, uint64) (uint64, bool){w.TakeFront, w.TakeBack} {
			both.Go(func() {
				for i, ok := take(round, n); ok; i, ok = take(round, n) {
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
	for _, word := range []uint64{first(2, 0, n), first(1, n, n), first(1, 3, 2), first(1, n+1, n+2), ^uint64(0)} {
		w := Words{word}
		if i, ok := w.TakeFront(1, n); ok || w[0] != word {
			t.Errorf("%#x: chunk %d from the front", word, i)
		}
		if i, ok := w.TakeBack(1, n); ok || w[0] != word {
			t.Errorf("%#x: chunk %d from the back", word, i)
		}
		if back, left := w.Left(1, n); left || back > n {
			t.Errorf("%#x: chunks are left, %v, the helper's from %d on", word, left, back)
		}
		if i := w.Stop(1, n); i > n {
			t.Errorf("%#x: the helper has chunks from %d on", word, i)
		}
	}
}

// TestStop takes the rest of a round from the helper.
func TestStop(t *testing.T) {
	w := Words{first(1, 0, 4)}
	if i, ok := w.TakeBack(1, 4); !ok || i != 3 {
		t.Fatalf("the last chunk is %d, %v", i, ok)
	}
	if back, left := w.Left(1, 4); !left || back != 3 {
		t.Errorf("chunks are left, %v, the helper's from %d on", left, back)
	}
	if i := w.Stop(1, 4); i != 3 {
		t.Errorf("the helper has chunks from %d on", i)
	}
	if back, left := w.Left(1, 4); left || back != 3 {
		t.Errorf("after the end chunks are left, %v, the helper's from %d on", left, back)
	}
	if _, ok := w.TakeBack(1, 4); ok {
		t.Error("a chunk is taken of a round that has ended")
	}
}

// TestHelper counts in the helper's word: chunks, a failure, and offers, past the ends of their fields.
func TestHelper(t *testing.T) {
	w := Words{0, 1<<32 - 1}
	if done, _ := w.Wait(0, 3); done {
		t.Error("the count has come to what it has not reached")
	}
	w.Count(false)
	if done, failed := w.Wait(0, 1); !done || failed || w[1] != 0 {
		t.Errorf("after the count has wrapped: done %v, failed %v, word %#x", done, failed, w[1])
	}
	w.Count(true)
	w.Count(false)
	if done, failed := w.Wait(2, 1); !done || !failed {
		t.Errorf("done %v, failed %v", done, failed)
	}
	for i := range uint16(1 << 15) {
		w.See()
		if n := w.unseen(i + 1); n != 0 {
			t.Fatalf("%d of %d offers are not seen", n, i+1)
		}
	}
	if n := w.unseen(3); n != 3 {
		t.Errorf("%d offers are not seen, want 3", n)
	}
	if done, failed := w.Wait(2, 1); !done || !failed {
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
