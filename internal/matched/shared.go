package matched

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/order"
)

// Injected writes and atomic operations (fi_inject_write, fi_inject_atomic) have no place in the table: nothing is
// reported of one that succeeds but that a counter counts it, and of one that fails there is no context to name. The
// device has one context for all of a kind (hw.MatchTransfer.Shared), and its event says how many bytes were written.
// Those that wait for others (fi.Fence), and deferred work, have places.
//
// The device does not know of such operations to which peer they go. Where one with fi.Fence finds some under way it is
// to try again, and injected operations that are posted until it has passed have places, so that it waits for those to
// its peer alone, and threads that inject to others do not keep it waiting.

// Shared contexts. They name no place, as those have odd words.
const (
	contextWrite  = iota // of all injected writes
	contextAtomic        // of all injected atomic operations
)

// isShared reports whether a context is such a one.
func isShared(context uint64) bool { return context <= contextAtomic }

// shared reports whether an operation may have a context that is others', too. It needs nothing of the runtime.
func (o *operation) shared() bool {
	return o.inject && (o.kind == kindWrite || o.kind == kindAtomic) && o.flags&(fi.Fence|workFlag) == 0
}

// sharedContext is that context. It needs nothing of the runtime.
func (o *operation) sharedContext() uint64 {
	if o.kind == kindAtomic {
		return contextAtomic
	}
	return contextWrite
}

// sharedOf is what is known of an operation with such a context that has written so many bytes. It needs nothing of the
// runtime.
func sharedOf(context, n uint64) operation {
	o := operation{kind: kindWrite, inject: true, len: n}
	if context == contextAtomic {
		o.kind = kindAtomic
	}
	return o
}

// share counts such an operation, before the device has it. It needs nothing of the runtime.
func (e *Endpoint) share(alone bool) { e.countShared(1, alone) }

// unshare takes one back that the device has not taken. It needs nothing of the runtime.
func (e *Endpoint) unshare() { e.countShared(^uint32(0), false) }

// countShared adds n, modulo 2^32, to what was posted. It needs nothing of the runtime.
func (e *Endpoint) countShared(n uint32, alone bool) {
	if alone {
		order.Store32(&e.sharedPosted, e.sharedPosted+n)
		return
	}
	atomic.AddUint32(&e.sharedPosted, n)
}

// endShared counts one that has ended. Lease. It needs nothing of the runtime.
func (e *Endpoint) endShared() { order.Store32(&e.sharedEnded, e.sharedEnded+1) }

// shares reports whether some are under way. It needs nothing of the runtime.
func (e *Endpoint) shares() bool {
	// Those that have ended first: one of another thread that is posted and ends between both loads hides none.
	ended := atomic.LoadUint32(&e.sharedEnded)
	return atomic.LoadUint32(&e.sharedPosted) != ended
}

// fences reports whether an operation with fi.Fence needs more than the table to pass: the device's word on which peer
// such operations are for, or that those that are posted from now on go without places again. It needs nothing of the
// runtime.
func (e *Endpoint) fences() bool { return e.shares() || atomic.LoadUint32(&e.fenced) != 0 }

// awaitShared notes whether an operation with fi.Fence waits for such operations.
func (e *Endpoint) awaitShared(waits bool) {
	v := uint32(0)
	if waits {
		v = 1
	}
	if atomic.LoadUint32(&e.fenced) != v {
		atomic.StoreUint32(&e.fenced, v)
	}
}

// placeless reports whether an operation goes with such a context now. It needs nothing of the runtime.
func (e *Endpoint) placeless(o *operation) bool {
	return o.shared() && atomic.LoadUint32(&e.fenced) == 0
}
