package hot

import "structs"

// What a thread that posts needs.

// Peer is one fi_addr as an endpoint sees it, one cache line. The runtime fills the line, then stores Slots with
// release; the data plane loads Slots with acquire, and asks the runtime where it is NULL.
//
//weft:name weft_hot_peer
type Peer struct {
	_         structs.HostLayout
	Slots     uintptr `c:"_Atomic(unsigned char *)"` // of the peer's inbound ring
	Tail      uintptr `c:"_Atomic uint64_t *"`
	RxState   uintptr `c:"_Atomic uint32_t *"` // Rx*, armed is the word after it
	Log2Slots uint16
	Exclusive uint16  // one thread at a time writes to this ring, and no other side does
	Owner     uint32  // our attach index at the peer plus one
	Peer      uint32  // the interface's number for the peer
	Link      uint32  `c:"_Atomic"` // Go only: the endpoint's number for the peer plus one, 0 not resolved
	PID       uint32  `c:"_Atomic"` // of the peer, 0: its memory cannot be reached. The shim sets 0; relaxed
	KeyCount  uint32  // of keys, 0: the peer publishes no regions
	Keys      uintptr `c:"const struct weft_key *"` // the peer's; Claims claims follow
	Put       uint64  `c:"_Atomic"`                 // last unanswered write or atomic: position plus 1; relaxed
}

// EpochReader is what a thread says about itself, one cache line: whether it may be using what it has read in a line
// of [Peer], or a [MatchTransport] without the lease ([EpochReaderAt]).
//
//weft:name weft_epoch_reader
type EpochReader struct {
	_       structs.HostLayout
	Posting uint64 `c:"_Atomic"` // odd: yes. Written by the thread; relaxed, then release
	Taken   uint32 `c:"_Atomic"` // 1: a thread has this line
	_       [52]byte
}

// StarvedMillis is for how many milliseconds no bounce buffer has been free when messages that need one go as
// rendezvous, as longer ones do: their receiver has not polled for as long.
//
//weft:name WEFT_STARVED_MS
const StarvedMillis = 8

// Copies is how payload is copied (package copies). Used by the holder of the lease of what it is part of.
//
//weft:name weft_hot_copies
type Copies struct {
	_     structs.HostLayout
	Cost  uint64 // ticks that a MiB took lately, one way; 0: not known
	Other uint64 // the same the other way
	Count uint64 // of copies
	Taken uint64 // 1: the other way is taken
}

// Stripe is a transmit stripe: what a thread leases while it uses a bounce buffer or a request.
//
//weft:name weft_hot_stripe
type Stripe struct {
	_ structs.HostLayout
	// line 0: lease by CAS acquire, store release
	Lease uint32 `c:"_Atomic"`
	_     [60]byte
	// line 1: used by the lease holder only
	Bounce       uintptr `c:"unsigned char *"` // this stripe's buffers
	BounceFirst  uint32  // number of the first of them in the segment
	BounceCount  uint32
	BounceNext   uint32
	BounceStride uint32
	PendingNext  uint32 // of the stripe's part of pendings: where the search begins
	Starved      uint32 // since when no buffer was free, ms of CLOCK_MONOTONIC_COARSE; 0: one was
	Copies       Copies // of payload to a buffer
}
