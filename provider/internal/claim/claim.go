// Package claim shares the chunks of one copy between two processors: those of a receiver and the sender of a long
// message, or of the initiator of a long read or write and its target.
//
// The side that begins, the opener, opens a round: it cuts the operation into chunks, offers the other a share, and
// takes chunks from the front. The other, the helper, takes them from the back when it makes progress. They meet
// somewhere in the middle, and a helper that computes instead costs nothing.
//
// Each use has two words that both sides reach. The first says which chunks are taken, and is changed by
// compare-and-swap:
//
//	63      48 47        24 23         0
//	+---------+------------+-----------+
//	|  round  |   front    |   back    |   chunks below front are the opener's,
//	+---------+------------+-----------+   from back on the helper's
//
// The second is the helper's word, which it alone changes:
//
//	63     48 47       46     32 31           0
//	+--------+--------+---------+-------------+
//	|        | failed |  seen   |    count    |
//	+--------+--------+---------+-------------+
//
// count is of the chunks that it has completed, in all rounds; failed says that it could not copy one, for good; seen
// is of the offers that it has polled, where the opener asks. The opener gives no buffer back before the count says
// that all chunks that the helper took are complete, or the helper is dead: a late write would spoil memory that the
// application has back.
//
// A round ends when all its chunks are taken. Then the opener begins one with the next operation with the same helper,
// which finds the offer when it has completed its last chunk: neither waits for the other between two operations. Two
// rounds run at a time at most.
//
// [Rounds] is what an opener keeps of its rounds with one helper, [Words] the words.
//
// What the other side writes there is not trusted: it can delay or spoil the operation that the two share, and leads
// nowhere else.
package claim

import "sync/atomic"

const (
	// RoundShift is where the round begins in the first word.
	RoundShift = 48
	frontShift = 24
	chunkMask  = 1<<frontShift - 1
	// MaxChunks is the most chunks of a round.
	MaxChunks = chunkMask

	seenShift = 32
	seenMask  = 1<<15 - 1
	// failedBit is the bit of the helper's word that says that it could not copy a chunk.
	failedBit = 1 << 47
)

// MaxRounds is how many rounds with one helper may run.
const MaxRounds = 2

// Outcome is what a round has led to for the operation that its opener shares.
type Outcome int

// The outcomes.
const (
	Alone Outcome = iota // the opener does by itself what it has not copied
	All                  // all is copied
	Part                 // the helper is at its last chunk: the operation ends later
	Dead                 // the helper is dead
)

// Words are the two words of one use. Both sides change the first by compare-and-swap, the helper alone the second;
// all accesses are sequentially consistent.
type Words [2]uint64

// MessageWords is the part of the words that two endpoints share which belongs to messages, nil for nil.
func MessageWords(w *[4]uint64) *Words {
	if w == nil {
		return nil
	}
	return (*Words)(w[0:2])
}

// OneSidedWords is the part that belongs to reads and writes, nil for nil.
func OneSidedWords(w *[4]uint64) *Words {
	if w == nil {
		return nil
	}
	return (*Words)(w[2:4])
}

// first is a first word. round is below 1<<16, front and back are at most MaxChunks.
func first(round, front, back uint64) uint64 {
	return round<<RoundShift | front<<frontShift | back
}

// split returns what a first word holds.
func split(w uint64) (round, front, back uint64) {
	return w >> RoundShift, w >> frontShift & chunkMask, w & chunkMask
}

// Chunks is how many chunks of a length cover want bytes.
func Chunks(want, chunk uint64) uint64 { return (want + chunk - 1) / chunk }

// TakeFront takes the opener's next chunk of a round of n. It reports false when none is left.
func (w *Words) TakeFront(round, n uint64) (uint64, bool) {
	for {
		old := atomic.LoadUint64(&w[0])
		got, front, back := split(old)
		if got != round || front >= back || front >= n {
			return 0, false
		}
		if atomic.CompareAndSwapUint64(&w[0], old, first(round, front+1, back)) {
			return front, true
		}
	}
}

// TakeBack takes the helper's next chunk of a round of n. It reports false when none is left.
func (w *Words) TakeBack(round, n uint64) (uint64, bool) {
	for {
		old := atomic.LoadUint64(&w[0])
		got, front, back := split(old)
		if got != round || front >= back || back > n {
			return 0, false
		}
		if atomic.CompareAndSwapUint64(&w[0], old, first(round, front, back-1)) {
			return back - 1, true
		}
	}
}

// Left reports whether chunks of a round of n are not taken, and where the helper's begin.
func (w *Words) Left(round, n uint64) (back uint64, left bool) {
	got, front, back := split(atomic.LoadUint64(&w[0]))
	back = min(back, n)
	return back, got == round && front < back
}

// Stop takes all chunks that are left of a round of n and returns where the helper's begin.
func (w *Words) Stop(round, n uint64) uint64 {
	for {
		old := atomic.LoadUint64(&w[0])
		got, front, back := split(old)
		if got != round || front >= back ||
			atomic.CompareAndSwapUint64(&w[0], old, first(round, back, back)) {
			return min(back, n)
		}
	}
}

// Wait reports whether the helper's count has come to needs, and whether it failed at a chunk. polls is how often
// the word is read.
func (w *Words) Wait(needs uint32, polls int) (done, failed bool) {
	for range polls {
		if h := atomic.LoadUint64(&w[1]); int32(uint32(h)-needs) >= 0 {
			return true, h&failedBit != 0
		}
	}
	return false, false
}

// Done is the helper's count: of the chunks that it has completed, modulo 2^32, and whether it failed at one.
func (w *Words) Done() (n uint32, failed bool) {
	h := atomic.LoadUint64(&w[1])
	return uint32(h), h&failedBit != 0
}

// Count counts a chunk that the helper took: it is copied, or failed. The caller is the helper.
func (w *Words) Count(failed bool) {
	h := atomic.LoadUint64(&w[1])
	h = h&^(1<<seenShift-1) | uint64(uint32(h)+1)
	if failed {
		h |= failedBit
	}
	atomic.StoreUint64(&w[1], h)
}

// See counts an offer that the helper has polled. The caller is the helper.
func (w *Words) See() {
	h := atomic.LoadUint64(&w[1])
	seen := (h>>seenShift + 1) & seenMask
	atomic.StoreUint64(&w[1], h&^(seenMask<<seenShift)|seen<<seenShift)
}

// unseen is how many of the offers that an opener has made, modulo 2^15, the helper has not polled.
func (w *Words) unseen(offers uint16) int {
	return int((uint64(offers) - atomic.LoadUint64(&w[1])>>seenShift) & seenMask)
}
