package hw

// MatchOp is an operation on one element in a peer's region, by the number that libfabric has for it.
type MatchOp uint8

// Operations. Those from MatchSwap on compare the element with an operand of their own, and fetch; MatchRead fetches.
const (
	MatchMin        MatchOp = 0
	MatchMax        MatchOp = 1
	MatchSum        MatchOp = 2
	MatchLogicalOr  MatchOp = 4
	MatchLogicalAnd MatchOp = 5
	MatchOr         MatchOp = 6
	MatchAnd        MatchOp = 7
	MatchLogicalXor MatchOp = 8
	MatchXor        MatchOp = 9
	MatchRead       MatchOp = 10
	MatchWrite      MatchOp = 11
	MatchSwap       MatchOp = 12 // if the comparand is the element
	MatchSwapNE     MatchOp = 13 // if it is another
	MatchSwapLE     MatchOp = 14 // if it is at most the element
	MatchSwapLT     MatchOp = 15 // if it is less
	MatchSwapGE     MatchOp = 16
	MatchSwapGT     MatchOp = 17
	MatchMasked     MatchOp = 18 // the bits that the comparand has are replaced
)

// MatchType is the type of an element, likewise.
type MatchType uint8

// Types. Complex ones are two numbers.
const (
	MatchInt8      MatchType = 0
	MatchUint8     MatchType = 1
	MatchInt16     MatchType = 2
	MatchUint16    MatchType = 3
	MatchInt32     MatchType = 4
	MatchUint32    MatchType = 5
	MatchInt64     MatchType = 6
	MatchUint64    MatchType = 7
	MatchFloat     MatchType = 8
	MatchDouble    MatchType = 9
	MatchComplex64 MatchType = 10 // of two MatchFloat
	MatchComplex   MatchType = 11 // of two MatchDouble
	MatchInt128    MatchType = 14
	MatchUint128   MatchType = 15
)

// MatchAtomic is an operation on one element in a peer's region.
type MatchAtomic struct {
	To     MatchAddress
	Key    uint64
	Offset uint64 // in the region, bytes
	Op     MatchOp
	Type   MatchType
	// Fetch has what the element was come in MatchEvent.Fetched. Operations that compare and MatchRead always do.
	Fetch bool
	// Operand and Compare are elements, in their first bytes.
	Operand, Compare [16]byte
	// Events, Ordered, Delivered, More, Context and Shared are as in MatchTransfer.
	Events    bool
	Ordered   bool
	Delivered bool
	More      bool
	Context   uint64
	Shared    bool
}

// AtomicMatcher is what a MemoryMatcher may implement: elements in regions change atomically with respect to other such
// operations through the same device.
type AtomicMatcher interface {
	MemoryMatcher
	// AtomicValid reports whether there is an operation on a type.
	AtomicValid(op MatchOp, t MatchType, fetch bool) bool
	// PostAtomic posts an operation. It ends with an event MatchTransferred; errors of the event and of the call
	// are those of PostTransfer, and ErrInvalid for an operation that there is not, or an element out of alignment.
	// The region's right is RemoteWrite, of operations that fetch RemoteRead, and both with Delivered.
	PostAtomic(a *MatchAtomic) error
}
