package hot

import "structs"

// One-sided operations.

// States of a [Region].
//
//weft:enum weft_hot_region_state
const (
	RegionNone = 0 // nothing was ever entered
	RegionLive = 1
	RegionGone = 2 // it was live
)

// KeyDirect is set in [Region].Access where the data plane accesses the region without the runtime, beside the rights
// of a [Key].
const KeyDirect = 8

// Region is a key of a region that peers may access, as every access to the region is checked (dataplane.Admit), one
// line of a table of the domain's. The runtime fills the line, sets State last (release), and uses a line that is gone
// for nothing else. Before a region ends it has all threads pass a barrier, after it has changed State or taken
// KeyDirect away, and waits for those that are posting ([Grace]): the data plane accesses regions as an epoch reader. A
// line is found from the place on that [KeyPlace] gives, before the first with RegionNone; there is one.
//
//weft:name weft_hot_region
type Region struct {
	_      structs.HostLayout
	State  uint32 `c:"_Atomic"` // Region*
	Access uint32 `c:"_Atomic"` // Key*
	Key    uint64
	Addr   uint64 // of the first byte of its first part
	Base   uint64 // what peers call that address
	Len    uint64 // bytes
	Number uint32 // the runtime's
	_      [5]uint32
}

// RegionTableLog is the mask of a logarithm, that of the number of lines in a table of [Region], which stands in the
// bits of the table's address that an address of a line has not. The word with both is what dataplane.Admit takes;
// another table, with more lines, may take its place.
const RegionTableLog = 63

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
	Arrived    uint32  // bytes of the value, which may come in pieces; the progress lease's holder's
	Flags      uint64  // of the completion; with FI_READ it is answered with a value
}
