package provider

import "sync/atomic"

// Two processors copy the data of one operation together: a receiver and the
// sender of a long message (assist.go), the initiator of a long read or write
// and its target (rma_share.go). The one that begins opens a round: it cuts the
// operation into chunks, offers the other a share, and takes chunks from the
// front. The other, the helper, takes them from the back when it makes progress.
// They meet somewhere in the middle, and a helper that computes instead costs
// nothing.
//
// Each use has two words that both sides reach. The first is who has taken what,
// changed by compare-and-swap:
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
// count is of the chunks that it has finished, in all rounds; failed says that it
// could not copy one, for ever; seen is of the offers that it has looked at, where
// the opener asks (rma_share.go). The opener gives no buffer back before the count
// says that all chunks that the helper took are finished, or the helper is dead: a
// late write would spoil memory that the application has back.
//
// A round ends when all its chunks are taken. Then the opener begins one with the
// next operation with the same helper, which finds the offer when it has finished
// its last chunk: neither waits for the other between two operations. Two rounds
// are unfinished at a time at most.
//
// What the other side writes there is not trusted: it can delay or spoil the
// operation that the two share, and leads nowhere else.
const (
	roundShift = 48
	frontShift = 24
	chunkMask  = 1<<frontShift - 1
	maxChunks  = chunkMask

	seenShift    = 32
	seenMask     = 1<<15 - 1
	helperFailed = 1 << 47
)

// maxRounds is how many rounds with one helper may be unfinished.
const maxRounds = 2

// messageWords and oneSidedWords are the two uses' parts of the words that two
// endpoints share, nil for nil.
func messageWords(w *[4]uint64) *[2]uint64 {
	if w == nil {
		return nil
	}
	return (*[2]uint64)(w[0:2])
}

func oneSidedWords(w *[4]uint64) *[2]uint64 {
	if w == nil {
		return nil
	}
	return (*[2]uint64)(w[2:4])
}

func claimWord(round, front, back uint64) uint64 {
	return round<<roundShift | front<<frontShift | back
}

func splitClaim(w uint64) (round, front, back uint64) {
	return w >> roundShift, w >> frontShift & chunkMask, w & chunkMask
}

func chunks(want, chunk uint64) uint64 { return (want + chunk - 1) / chunk }

// takeFront takes the opener's next chunk. It reports false when none is left.
func takeFront(word *uint64, round, n uint64) (uint64, bool) {
	for {
		w := atomic.LoadUint64(word)
		got, front, back := splitClaim(w)
		if got != round || front >= back || front >= n {
			return 0, false
		}
		if atomic.CompareAndSwapUint64(word, w, claimWord(round, front+1, back)) {
			return front, true
		}
	}
}

// takeBack takes the helper's next chunk.
func takeBack(word *uint64, round, n uint64) (uint64, bool) {
	for {
		w := atomic.LoadUint64(word)
		got, front, back := splitClaim(w)
		if got != round || front >= back || back > n {
			return 0, false
		}
		if atomic.CompareAndSwapUint64(word, w, claimWord(round, front, back-1)) {
			return back - 1, true
		}
	}
}

// stopHelper takes all chunks that are left and returns where the helper's begin.
func stopHelper(word *uint64, round, n uint64) uint64 {
	for {
		w := atomic.LoadUint64(word)
		got, front, back := splitClaim(w)
		if got != round || front >= back || atomic.CompareAndSwapUint64(word, w, claimWord(round, back, back)) {
			return min(back, n)
		}
	}
}

// waitHelper reports whether the helper's count has come to needs, and whether it
// failed at a chunk. patience is how often it looks.
func waitHelper(word *uint64, needs uint32, patience int) (done, failed bool) {
	for range patience {
		if w := atomic.LoadUint64(word); int32(uint32(w)-needs) >= 0 {
			return true, w&helperFailed != 0
		}
	}
	return false, false
}

// countChunk is the helper's word on a chunk that it took: it is copied, or
// failed. The caller is the only one that changes the word.
func countChunk(word *uint64, failed bool) {
	w := atomic.LoadUint64(word)
	w = w&^(1<<seenShift-1) | uint64(uint32(w)+1)
	if failed {
		w |= helperFailed
	}
	atomic.StoreUint64(word, w)
}

// countSeen is the helper's word that it looks at an offer.
func countSeen(word *uint64) {
	w := atomic.LoadUint64(word)
	seen := (w>>seenShift + 1) & seenMask
	atomic.StoreUint64(word, w&^(seenMask<<seenShift)|seen<<seenShift)
}

// unseen is how many of the offers that an opener has made, modulo 2^15, the
// helper has not looked at.
func unseen(word uint64, offers uint16) int {
	return int((uint64(offers) - word>>seenShift) & seenMask)
}
