package trace

import (
	"fmt"
	"math/bits"
)

// Histograms have four buckets for each power of two nanoseconds, so that a
// value is known within a quarter; the kernel counts (program.go).
const (
	subBits   = 2
	maxLog    = 40
	histogram = (maxLog + 1) << subBits

	// what is shorter or longer counts as these
	lowestTime  = 1 << subBits
	highestTime = 1<<(maxLog+1) - 1 // 37 minutes
)

// bucketOf is what the program in the kernel computes.
func bucketOf(ns uint64) int {
	ns = min(max(ns, lowestTime), highestTime)
	log := bits.Len64(ns) - 1
	return log<<subBits + int(ns>>(log-subBits)&(1<<subBits-1))
}

// lowest is the lowest value of a bucket.
func lowest(bucket int) uint64 {
	log := bucket >> subBits
	if log < subBits {
		return 0 // buckets that no value has
	}
	return uint64(1<<subBits+bucket&(1<<subBits-1)) << (log - subBits)
}

// counts is a histogram and the sum of its values.
type counts struct {
	buckets [histogram]uint64
	sum     uint64 // ns
}

func (c *counts) total() uint64 {
	n := uint64(0)
	for _, b := range c.buckets {
		n += b
	}
	return n
}

// quantile returns the upper end of the bucket in which the quantile is, ns; 0
// without values.
func (c *counts) quantile(q float64) uint64 {
	total := c.total()
	want, n := uint64(q*float64(total)+0.5), uint64(0)
	want = min(max(want, 1), total)
	for i, b := range c.buckets {
		if n += b; b != 0 && n >= want {
			return lowest(i + 1)
		}
	}
	return 0
}

// duration writes nanoseconds in three digits and a unit.
func duration(ns float64) string {
	switch {
	case ns < 999.5:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 999.5e3:
		return fmt.Sprintf("%.3g us", ns/1e3)
	case ns < 999.5e6:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	}
	return fmt.Sprintf("%.3g s", ns/1e9)
}
