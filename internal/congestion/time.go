package congestion

import "time"

// Time is a reading of a monotonic clock in nanoseconds. Its zero point is the
// clock's own business; two readings of one clock may be subtracted, and
// nothing else may be done with them.
type Time int64

// Add returns the time d after t.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Rand is a source of random numbers, uniform over 64 bits. The sources of
// math/rand/v2 are such.
type Rand interface {
	Uint64() uint64
}

// below returns a random number in [0, n), for n > 0. Its bias is n/2^64.
func below(r Rand, n int) int { return int(r.Uint64() % uint64(n)) }

// second is the unit of rates in a Time.
const second = int64(time.Second)

// rate returns the bytes per second of so many bytes in d, 0 if d is not
// positive. It does not overflow below 2^53 bytes.
func rate(bytes int64, d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64(float64(bytes) * float64(second) / float64(d))
}

// airtime returns how long so many bytes take at a rate, 0 for an unknown rate.
func airtime(bytes, bytesPerSecond int64) time.Duration {
	if bytesPerSecond <= 0 {
		return 0
	}
	return time.Duration(float64(bytes) * float64(second) / float64(bytesPerSecond))
}

// product returns what a rate carries in d, rounded down.
func product(bytesPerSecond int64, d time.Duration) int64 {
	return int64(float64(bytesPerSecond) * float64(d) / float64(second))
}
