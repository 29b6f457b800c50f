//go:build race

package lease

import "sync/atomic"

// mustBeTaken panics where a lease is free.
func mustBeTaken(word *uint32) {
	if atomic.LoadUint32(word) == 0 {
		panic("state behind a lease that is free")
	}
}
