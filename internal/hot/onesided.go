package hot

import "structs"

// One-sided operations.

// Region is a region that peers may access, as the side that serves them sees it, one line. Go fills the entry and
// sets Live last (release). After clearing it Go has all threads pass a barrier and waits for those that are posting
// ([Grace]) before the region ends or the entry is used again; a thread that uses a region is an epoch reader. An
// entry stands within KeyProbes of the place that [KeyPlace] gives.
//
//weft:name weft_hot_region
type Region struct {
	_      structs.HostLayout
	Live   uint32 `c:"_Atomic"`
	Access uint32 // Key*
	Key    uint64
	Addr   uint64 // of the first byte
	Base   uint64 // what peers call that address
	Len    uint64 // bytes
	_      [3]uint64
}

// CopyMinWrite is the shortest write, in bytes, that the posting thread copies to the peer's memory: a peer that polls
// takes in a shorter one faster than the kernel copies it.
const CopyMinWrite = 2048

// DelegateAhead is how many completions are unread when an application posts ahead.
const DelegateAhead = 2

// AccessMin is the shortest copy, in bytes, that huge pages make faster: shorter ones do not count as use of the memory
// (provider/internal/pages).
const AccessMin = 32768

// AccessPieceMin is the same for the pieces of a list, in the mean.
const AccessPieceMin = 4096

// PendingID is set in the ids of [Pending] and in no other.
const PendingID = 1 << 63

// Pending is an operation on a peer's memory that the data plane has posted and whose answer it waits for, one line: an
// atomic that fetches, a read that is a message, or a write or an atomic that completes when it is delivered. Its id is
// PendingID, the generation above bit 32, and its place. The holder of the stripe's lease takes a free one; the
// progress lease's holder frees it.
//
//weft:name weft_hot_pending
type Pending struct {
	_          structs.HostLayout
	Busy       uint32 `c:"_Atomic"` // 1: in use. Stored with release by both
	Generation uint32 // raised by the thread that takes it
	Result     uint64 // where the value goes that it fetches or reads
	Bytes      uint64 // of that value, or that are written
	Context    uint64
	Dest       uint64  // fi_addr_t
	Ring       uintptr `c:"const unsigned char *"` // slots of the peer's ring, not those of a later peer
	Completes  uint32  // 1: on the transmit queue
	Arrived    uint32  // bytes of the value, of one that comes in pieces; Go's, the progress lease's holder
	Flags      uint64  // of the completion; with FI_READ it is answered with a value
}
