package outbound

import (
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// How payload is copied into bounce buffers. The lines of a buffer are in the caches of the receiver that read them
// last. The ordinary copy takes each from there: little time from a processor that shares a cache with this one, and
// several times as much from one that does not. A copy past the caches takes the same time wherever they are, and its
// receiver reads them from memory. How far the peer is is not known, and changes as threads and virtual machines move.
// So copies are timed, and one in fillTrial goes the other way.
const (
	fillMin   = 4 << 10 // shorter payload is not timed
	fillTrial = 512
	fillFirst = 16 // of the first copies of a stripe
	fillGain  = 4  // how many times as long the ordinary copy takes where the other is taken, as it costs the receiver
)

// Fill copies n bytes of payload from an address into a bounce buffer of a stripe whose lease the caller holds.
func Fill(s *hot.Stripe, b *hot.Bounce, from, n uintptr) {
	to := Payload(b)
	if !mem.HasTimed || n < fillMin {
		mem.Stream(unsafe.Slice((*byte)(at(&to)), n), unsafe.Slice((*byte)(at(&from)), n))
		return
	}
	past, cost := nextFill(s)
	learn(cost, uint64(mem.CopyTimed(to, from, n, past))<<10/uint64(n))
}

// at views an address. The detour through memory shows vet that this is no arithmetic on a Go pointer.
func at(addr *uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(addr)) }

// nextFill chooses how the next payload is copied, past the caches (1) or not, and returns where the time of that is
// kept.
func nextFill(s *hot.Stripe) (past uintptr, cost *uint64) {
	if s.CostPast != 0 && s.CostPast*fillGain < s.Cost {
		past = 1
	}
	if s.Fills++; s.Fills%fillTrial == fillFirst {
		past ^= 1
	}
	if past != 0 {
		return past, &s.CostPast
	}
	return past, &s.Cost
}

// learn takes the ticks that a copy has taken for each KiB into a mean, in which one that was interrupted counts for
// little.
func learn(cost *uint64, ticks uint64) {
	if *cost == 0 {
		*cost = max(ticks, 1)
		return
	}
	*cost = max((*cost*3+min(ticks, *cost*4))/4, 1)
}
