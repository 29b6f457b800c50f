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
// count is of the chunks that it has finished, in all rounds; failed says that it could not copy one, for good; seen is
// of the offers that it has polled, where the opener asks. The opener gives no buffer back before the count says that
// all chunks that the helper took are finished, or the helper is dead: a late write would spoil memory that the
// application has back.
//
// A round ends when all its chunks are taken. Then the opener begins one with the next operation with the same helper,
// which finds the offer when it has finished its last chunk: neither waits for the other between two operations. Two
// rounds are unfinished at a time at most.
//
// What the other side writes there is not trusted: it can delay or spoil the operation that the two share, and leads
// nowhere else.
package claim

import "sync/atomic"

const (
	// RoundShift is where the round begins in the first word.
	RoundShift = 48
	frontShift = 24
	// ChunkMask are the bits of front and back, each at its place.
	ChunkMask = 1<<frontShift - 1
	// MaxChunks is the most chunks of a round.
	MaxChunks = ChunkMask

	seenShift = 32
	seenMask  = 1<<15 - 1
	// Failed is the bit of the helper's word that says that it could not copy a chunk.
	Failed = 1 << 47
)

// MaxRounds is how many rounds with one helper may be unfinished.
const MaxRounds = 2

// MessageWords is the part of the words that two endpoints share which belongs to messages, nil for nil.
func MessageWords(w *[4]uint64) *[2]uint64 {
	if w == nil {
		return nil
	}
	return (*[2]uint64)(w[0:2])
}

// OneSidedWords is the part that belongs to reads and writes, nil for nil.
func OneSidedWords(w *[4]uint64) *[2]uint64 {
	if w == nil {
		return nil
	}
	return (*[2]uint64)(w[2:4])
}

// Word is a first word. round is below 1<<16, front and back are at most MaxChunks.
func Word(round, front, back uint64) uint64 {
	return round<<RoundShift | front<<frontShift | back
}

// Split returns what a first word holds.
func Split(w uint64) (round, front, back uint64) {
	return w >> RoundShift, w >> frontShift & ChunkMask, w & ChunkMask
}

// Chunks is how many chunks of a length cover want bytes.
func Chunks(want, chunk uint64) uint64 { return (want + chunk - 1) / chunk }

// TakeFront takes the opener's next chunk. It reports false when none is left.
func TakeFront(word *uint64, round, n uint64) (uint64, bool) {
	for {
		w := atomic.LoadUint64(word)
		got, front, back := Split(w)
		if got != round || front >= back || front >= n {
			return 0, false
		}
		if atomic.CompareAndSwapUint64(word, w, Word(round, front+1, back)) {
			return front, true
		}
	}
}

// TakeBack takes the helper's next chunk. It reports false when none is left.
func TakeBack(word *uint64, round, n uint64) (uint64, bool) {
	for {
		w := atomic.LoadUint64(word)
		got, front, back := Split(w)
		if got != round || front >= back || back > n {
			return 0, false
		}
		if atomic.CompareAndSwapUint64(word, w, Word(round, front, back-1)) {
			return back - 1, true
		}
	}
}

// Stop takes all chunks that are left and returns where the helper's begin.
func Stop(word *uint64, round, n uint64) uint64 {
	for {
		w := atomic.LoadUint64(word)
		got, front, back := Split(w)
		if got != round || front >= back || atomic.CompareAndSwapUint64(word, w, Word(round, back, back)) {
			return min(back, n)
		}
	}
}

// Wait reports whether the helper's count has come to needs, and whether it failed at a chunk. patience is how often
// the word is read.
func Wait(word *uint64, needs uint32, patience int) (done, failed bool) {
	for range patience {
		if w := atomic.LoadUint64(word); int32(uint32(w)-needs) >= 0 {
			return true, w&Failed != 0
		}
	}
	return false, false
}

// Count counts a chunk that the helper took: it is copied, or failed. The caller is the only one that changes the
// helper's word.
func Count(word *uint64, failed bool) {
	w := atomic.LoadUint64(word)
	w = w&^(1<<seenShift-1) | uint64(uint32(w)+1)
	if failed {
		w |= Failed
	}
	atomic.StoreUint64(word, w)
}

// See counts an offer that the helper has polled. The caller is the only one that changes the helper's word.
func See(word *uint64) {
	w := atomic.LoadUint64(word)
	seen := (w>>seenShift + 1) & seenMask
	atomic.StoreUint64(word, w&^(seenMask<<seenShift)|seen<<seenShift)
}

// Unseen is how many of the offers that an opener has made, modulo 2^15, the helper has not polled.
func Unseen(word uint64, offers uint16) int {
	return int((uint64(offers) - word>>seenShift) & seenMask)
}
