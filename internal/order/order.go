// Package order has the two memory orders that the data path needs and
// sync/atomic does not name: a store that only releases, and a full fence.
//
// A store of sync/atomic is sequentially consistent; on amd64 that is a locked
// exchange of some 20 cycles, several of which a message would pay. A plain
// store is a release store there, because the processor keeps the order of
// stores and of earlier loads before them (Intel SDM volume 3, section 9.2.2)
// and the Go compiler keeps stores to memory, and loads before them, in program
// order. Under the race detector and elsewhere the store is sync/atomic's; on
// arm64 that is a release store already.
//
// What a release store does not do is order itself before a later load. Where that is needed (check whether a thread
// sleeps after publishing) [Fence] goes between.
package order

import "sync/atomic"

// Fence orders all memory accesses before it before all after it. Its locked instruction is on a word of the caller's
// stack.
func Fence() {
	var word uint32
	atomic.AddUint32(&word, 0)
}
