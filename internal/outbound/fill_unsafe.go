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
// So copies are timed, and once a period fillTrial of them go the other way. Those that begin a trial, and those behind
// it, find lines where the way before has left them, and are not counted: one of each way among those of the other
// would cost about the same.
const (
	fillMin    = 4 << 10 // bytes; shorter payload is not timed
	fillPeriod = 8192    // copies, from one trial to the next
	fillFirst  = 256     // copies, before the first
	fillTrial  = 128     // copies, of which the second half counts: more than a stripe has buffers in most cases
	fillGain   = 4       // how many times as long the ordinary copy takes where the other is taken
)

// Fill copies n bytes of payload from an address into a bounce buffer of a stripe whose lease the caller holds.
func Fill(s *hot.Stripe, b *hot.Bounce, from, n uintptr) {
	to := Payload(b)
	if !mem.HasTimed || n < fillMin {
		mem.Stream(unsafe.Slice((*byte)(at(&to)), n), unsafe.Slice((*byte)(at(&from)), n))
		return
	}
	past, cost := nextFill(s)
	ticks := uint64(mem.CopyTimed(to, from, n, past))
	if cost != nil {
		learn(cost, ticks<<10/uint64(n))
	}
}

// at views an address. The detour through memory shows vet that this is no arithmetic on a Go pointer.
func at(addr *uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(addr)) }

// nextFill chooses how the next payload is copied, past the caches (1) or not, and returns where the time of that is
// kept, nil: it does not count.
func nextFill(s *hot.Stripe) (past uintptr, cost *uint64) {
	n := (s.Fills + fillPeriod - fillFirst) % fillPeriod
	s.Fills++
	if n == fillTrial {
		s.Past = 0
		if s.CostPast*fillGain < s.Cost {
			s.Past = 1
		}
	}
	past, counts := uintptr(s.Past), n >= 2*fillTrial
	if n < fillTrial {
		past, counts = past^1, n >= fillTrial/2
	}
	switch {
	case !counts:
		return past, nil
	case past != 0:
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
