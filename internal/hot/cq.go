package hot

import "structs"

// Completion queues and counters.

// Bits of [CQE].Flags beyond libfabric's.
const (
	// CQEError: Buf is the address of a [CQError]; 0: the entry says all, and Src why it failed (cqring.Brief)
	CQEError uint64 = 1 << 63
)

// What a ready slot of a completion queue's ring holds: the owner field of its sequence word.
//
//weft:enum weft_cq_mark
const (
	CQMarkEntry = 0
	CQMarkError = 1 // stays until fi_cq_readerr takes it
)

// CQE is a completion, one cache line.
//
//weft:name weft_cqe
type CQE struct {
	_       structs.HostLayout
	Seq     uint64 `c:"_Atomic"`
	Context uint64
	Flags   uint64 // fi_cq flags; CQEError
	Len     uint64
	Buf     uint64 // with CQEError: address of a [CQError], or 0
	Data    uint64
	Tag     uint64
	Src     uint64 // fi_addr_t; with CQEError see there
}

// CQError is what fi_cq_readerr says beyond the completion itself. Allocated and freed by Go.
//
//weft:name weft_cq_error
type CQError struct {
	_         structs.HostLayout
	Buf       uint64
	OLen      uint64
	Err       int32 // positive FI_E*
	ProvErrno int32
	Src       uint64
}

// Bits of [CQ].Flags, and of [Cntr].Flags.
const (
	CQExclusive  = 1 // one thread at a time uses the queue (FI_THREAD_DOMAIN, COMPLETION)
	CQWaitable   = 2 // has a wait object: read armed after publishing
	CntrTriggers = 4 // something waits for the counter to reach a value
	CntrBytes    = 8 // bytes are counted, not operations
)

// CQ is a completion queue.
//
//weft:name weft_hot_cq
type CQ struct {
	_ structs.HostLayout
	// line 0: immutable after open, except flags and eps
	Rings      uintptr `c:"unsigned char *"` // nrings blocks of ring_stride bytes: head line, tail line, slots
	RingStride uint64
	NRings     uint32 // power of two plus one: ring 0 is the progress engines', 1.. the stripes'
	Log2Slots  uint32
	Format     uint32 // enum fi_cq_format
	Flags      uint32 `c:"_Atomic"` // CQ*; Go clears CQExclusive (cqring.Share), seq_cst; any thread loads
	Handle     uint64 // Go's
	// Go: release; NULL-terminated, replaced as a whole, old ones live until close
	EPs  uintptr `c:"_Atomic(struct weft_hot_ep **)"`
	Last uint64  // of the slots of a ring, how many bytes behind the first
	_    [1]uint64
	// line 1
	Armed    uint32 `c:"_Atomic"` // 1: a reader sleeps or is about to (set by waiters, cleared by what wakes them)
	Signaled uint32 `c:"_Atomic"` // fi_cq_signal calls not yet seen by a waiter
	Overflow uint64 `c:"_Atomic"` // Go: completions kept off the rings because theirs was full
	// 1: messages that complete here are corked. Set before the completion, cleared by the reader that sends them;
	// relaxed
	Corked uint32 `c:"_Atomic"`
	// 1: some of those that are kept off the rings are of posts. Until those are on the rings posts are to be tried
	// again: a thread's completions are read in its order. Written under the list's lock, read by posts; seq_cst
	PostsKept uint32 `c:"_Atomic"`
	_         [40]byte
}

// CQRing is the header of one of a completion queue's rings; the slots follow.
//
//weft:name weft_cq_ring
type CQRing struct {
	_    structs.HostLayout
	Head uint64 `c:"_Atomic"` // consumers: CAS acq_rel; free running
	// of ring 0: where the next read starts. Readers store it, relaxed; a lost store costs fairness for one call
	Turn uint32 `c:"_Atomic"`
	_    [52]byte
	Tail uint64 `c:"_Atomic"` // producers' hint
	_    [56]byte
}

// Cntr is a counter.
//
//weft:name weft_hot_cntr
type Cntr struct {
	_      structs.HostLayout
	Value  uint64  `c:"_Atomic"` // producers add, readers load; relaxed add, acquire load
	Errors uint64  `c:"_Atomic"`
	EPs    uintptr `c:"_Atomic(struct weft_hot_ep **)"`
	Armed  uint32  `c:"_Atomic"`
	Flags  uint32  `c:"_Atomic"` // CQWaitable, CntrBytes, immutable; CntrTriggers, by Go; seq_cst
	Handle uint64
	_      [24]byte
}
