package congestion

import (
	"math/bits"
	"time"
)

// sizes learns what a segment's size adds to its RTT where the link's rate is
// not known: it keeps a base RTT for each class of sizes, and what a class's
// base exceeds that of the smallest class by is the size's doing. Within a
// class sizes differ by a factor of two at most.
//
// A class that first appears on a busy path would take part of the queue for its
// size, until a sample comes through without. It takes no more than what the
// size needs at the greatest rate seen: the link is at least that fast.
type sizes struct {
	base [sizeClasses]filter
	peak filter // delivery rates, negated
}

// The first class ends at 4 KiB, the last has everything above 8 MiB.
const (
	sizeClasses = 13
	sizeFirst   = 12
	// sizeLearn is the unit from which on sizes matter: a packet's
	// transmission time is not worth a class.
	sizeLearn = 16 << 10
)

func sizeClass(size int64) int {
	return min(max(bits.Len64(uint64(max(size-1, 0)))-sizeFirst, 0), sizeClasses-1)
}

// correct takes a sample in and returns it as the smallest class would have had
// it.
func (z *sizes) correct(now Time, window, rtt time.Duration, size int64) time.Duration {
	class := sizeClass(size)
	own := z.base[class].add(now, window, int64(rtt))
	for i := range z.base[:class] {
		if z.base[i].full {
			extra := max(time.Duration(own-z.base[i].get()), 0)
			if peak := -z.peak.get(); peak > 0 {
				extra = min(extra, airtime(size, peak))
			}
			return rtt - extra
		}
	}
	return rtt
}
