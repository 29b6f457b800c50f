// Package hot mirrors include/weft/hot.h, segment.h and ring.h: the plain-word
// tables that the C path reads and the layouts that C and Go share. The tests
// compare every size and offset with what a C compiler says.
//
// All objects of these types live off the Go heap (package internal/mem); pointers
// between them are C pointers. Fields that several threads use are accessed
// only through sync/atomic; the comments in hot.h say who writes, who reads
// and with which order.
package hot

import "structs"

// States of a ring slot, in the low two bits of its sequence word.
const (
	SlotFree  = 0
	SlotTaken = 1
	SlotReady = 2
)

// Shifts of the sequence word's fields.
const (
	SeqOwnerShift = 2
	SeqOwnerMask  = 0xffff
	SeqLapShift   = 18
)

// CacheLine is the unit of sharing, in bytes.
const CacheLine = 64

// Bits of [CQE].Flags beyond libfabric's.
const (
	CQEError uint64 = 1 << 63 // Buf is the address of a [CQError]
)

// Bits of [CQ].Flags.
const (
	CQExclusive = 1
	CQWaitable  = 2
	// CntrTriggers is a flag of counters.
	CntrTriggers = 4
	// CntrBytes is one: bytes are counted, not operations.
	CntrBytes = 8
)

// Bits of [RecvEntry].Flags beyond libfabric's.
const (
	RecvTagged uint64 = 1 << 63
	RecvIOV    uint64 = 1 << 62 // Buf is the address of Len iovecs, owned by the entry
	RecvCancel uint64 = 1 << 61 // Context names the receive to cancel
	RecvWork   uint64 = 1 << 60 // Context is a number of deferred work
	RecvDevice uint64 = 1 << 56 // Buf is, or holds, memory of a device: not for C
)

// Bits of [Rx].Flags.
const (
	RxExclusive = 1 // one thread at a time, no lease
)

// Bits of [Rx].Attention.
const (
	AttentionGo    = 1 // work of Go's
	AttentionPorts = 2 // the endpoints' ports are looked at
)

// Bits of [EP].Flags.
const (
	EPExclusive   = 1
	EPTxAlways    = 2
	EPFast        = 4
	EPMatches     = 8
	EPRxSelective = 16
	EPCtxShift    = 24
)

// PolledEnough is the value of [EP].Polled that says that the application makes
// progress by itself.
const PolledEnough = 16

// StarvedMillis is for how many milliseconds no bounce buffer has been free when
// messages that need one are announced.
const StarvedMillis = 8

// States of a progress thread's bell, which [Rx].Bell names.
const (
	BellAwake  = 0 // the thread looks by itself
	BellAsleep = 1 // who has work for it wakes it
)

// Bits of the segment's rx_state word.
const (
	RxOpen     = 1
	RxWaitable = 2
	RxGone     = 4
)

// Active message ids of the C path (include/weft/message.h).
const (
	AMMsg      = 1
	AMMsgData  = 2
	AMTag      = 3
	AMTagData  = 4
	AMRTS      = 5
	AMAck      = 7
	AMWrite    = 11
	AMAtomic   = 14
	AMReadData = 16
)

// Ring is a private view of a ring (struct weft_ring).
type Ring struct {
	_         structs.HostLayout
	Slots     uintptr
	Tail      uintptr
	Log2Slots uint32
	SlotBytes uint32
}

// CQE is a completion (struct weft_cqe).
type CQE struct {
	_       structs.HostLayout
	Seq     uint64
	Context uint64
	Flags   uint64
	Len     uint64
	Buf     uint64
	Data    uint64
	Tag     uint64
	Src     uint64
}

// CQError is what fi_cq_readerr tells beyond the completion (struct weft_cq_error).
type CQError struct {
	_         structs.HostLayout
	Buf       uint64
	OLen      uint64
	Err       int32
	ProvErrno int32
	Src       uint64
}

// CQ is a completion queue (struct weft_hot_cq).
type CQ struct {
	_          structs.HostLayout
	Rings      uintptr
	RingStride uint64
	NRings     uint32
	Log2Slots  uint32
	Format     uint32
	Flags      uint32
	Handle     uint64
	EPs        uintptr
	_          [2]uint64
	Armed      uint32
	Signaled   uint32
	Overflow   uint64
	Held       uint32
	_          [44]byte
}

// CQRing is the header of one of a completion queue's rings (struct weft_cq_ring).
type CQRing struct {
	_    structs.HostLayout
	Head uint64
	_    [56]byte
	Tail uint64
	_    [56]byte
}

// Cntr is a counter (struct weft_hot_cntr).
type Cntr struct {
	_      structs.HostLayout
	Value  uint64
	Errors uint64
	EPs    uintptr
	Armed  uint32
	Flags  uint32
	Handle uint64
	_      [24]byte
}

// RecvEntry is a posted receive on its way to the matcher (struct weft_recv_entry).
type RecvEntry struct {
	_       structs.HostLayout
	Seq     uint64
	Flags   uint64
	Buf     uint64
	Len     uint64
	Src     uint64
	Tag     uint64
	Ignore  uint64
	Context uint64
}

// Rx is a receive context (struct weft_hot_rx).
type Rx struct {
	_         structs.HostLayout
	Posts     Ring
	Handle    uint64
	Flags     uint32
	Selective uint32
	OpFlags   uint64
	Bell      uintptr
	BellEvent uint32
	Rest      uint32 // milliseconds
	Lease     uint32
	_         [60]byte
	PostsHead uint64
	WantPosts uint32
	Attention uint32
	Turn      uint32
	Timers    uint32
	Receiver  uintptr
	_         [32]byte
}

// Source is a sender as the receiver sees it (struct weft_hot_source).
type Source struct {
	_            structs.HostLayout
	Addr         uint64
	Bounce       uintptr
	BounceCount  uint32
	BounceStride uint32
	BounceBytes  uint32
	Context      uint32
	ID           uint32
	_            [28]byte
}

// PortSource is a sender behind a port (struct weft_hot_port_source).
type PortSource struct {
	_       structs.HostLayout
	Addr    uint64
	ID      uint32
	Context uint32
	Source  uint32
	_       [3]uint32
}

// Peer is one fi_addr as an endpoint sees it (struct weft_hot_peer).
type Peer struct {
	_         structs.HostLayout
	Slots     uintptr
	Tail      uintptr
	RxState   uintptr
	Log2Slots uint16
	Exclusive uint16
	Owner     uint32
	Peer      uint32
	Link      uint32
	PID       uint32
	KeyCount  uint32
	Keys      uintptr
	Put       uint64
}

// Poster is a thread that posts (struct weft_poster).
type Poster struct {
	_       structs.HostLayout
	Posting uint64
	Taken   uint32
	_       [52]byte
}

// Stripe is a transmit stripe (struct weft_hot_stripe).
type Stripe struct {
	_            structs.HostLayout
	Lease        uint32
	_            [60]byte
	Bounce       uintptr
	BounceFirst  uint32
	BounceCount  uint32
	BounceNext   uint32
	BounceStride uint32
	FetchNext    uint32
	Starved      uint32
	_            [4]uint64
}

// Region is a region that peers may access (struct weft_hot_region).
type Region struct {
	_      structs.HostLayout
	Live   uint32
	Access uint32
	Key    uint64
	Addr   uint64
	Base   uint64
	Len    uint64
	_      [3]uint64
}

// Fetch is an operation whose answer C waits for (struct weft_hot_fetch).
type Fetch struct {
	_          structs.HostLayout
	Busy       uint32
	Generation uint32
	Result     uint64
	Bytes      uint64
	Context    uint64
	Dest       uint64
	Ring       uintptr
	Completes  uint32
	_          uint32
	_          uint64
}

// FetchID is set in the ids of [Fetch] and in no other.
const FetchID = 1 << 63

// CopyMinWrite is the shortest write, in bytes, that the posting thread copies to the
// peer's memory.
const CopyMinWrite = 2048

// LendAhead is how many completions nobody has read when an application posts ahead.
const LendAhead = 2

// HeatMin is the shortest copy, in bytes, that huge pages make faster.
const HeatMin = 32768

// PortMessage is a message, arrived or to be sent (struct weft_port_message).
type PortMessage struct {
	_         structs.HostLayout
	Header    uint64
	Head      uintptr
	Payload   uintptr
	Length    uint32
	Source    uint32
	HeadBytes uint16
	ID        uint8
	Hold      uint8
	_         [4]byte
}

// Whether a message may be held.
const (
	HoldNever = 0
	HoldInRow = 1
	HoldMore  = 2
)

// What Port.Next finds.
const (
	PortEmpty   = 0
	PortArrival = 1
	PortGo      = 2
)

// Port is an interface to other hosts that C takes messages from (struct weft_hot_port).
type Port struct {
	_      structs.HostLayout
	Next   uintptr
	Take   uintptr
	Flush  uintptr
	Glance uintptr
	Taken  uint64
	Silent uint32
	_      uint32
}

// What Path.Send says.
const (
	PathSent = 0
	PathFull = 1
	PathGo   = 2
	PathHeld = 3
)

// Path is the way to a peer over such an interface (struct weft_hot_path).
type Path struct {
	_    structs.HostLayout
	Send uintptr
	Max  uint32
	_    uint32
}

// Inbound is one of an endpoint's inbound rings (struct weft_inbound).
type Inbound struct {
	_    structs.HostLayout
	Ring Ring
	Head uint64
	_    [4]uint64
}

// EP is an endpoint (struct weft_hot_ep).
type EP struct {
	_            structs.HostLayout
	Peers        uintptr
	PeerLimit    uint64
	TxCQ         uintptr
	TxCntr       uintptr
	Stripes      uintptr
	StripeMask   uint32
	Flags        uint32
	InjectMax    uint32
	EagerMax     uint32
	Handle       uint64
	StatsThreads uintptr
	Rx           uintptr
	Lanes        uintptr
	RxState      uintptr
	Sources      uintptr
	RxCQ         uintptr
	SourceLimit  uint32
	Polled       uint32
	StatsRx      uintptr
	Regions      uintptr
	RegionCount  uint32
	FetchCount   uint32
	Fetches      uintptr
	WriteCntr    uintptr
	ReadCntr     uintptr
	CopyMax      uint64
	StartTime    uint64
	PID          uint32
	LendMin      uint32
	Port         uintptr
	Paths        uintptr
	PortSources  uintptr
	LendRest     uint32
	ReadMax      uint32
	CopiedMax    uint64
	Copied       uint64
	PortActive   uint32
	Number       uint32
	RxCntr       uintptr
	Inbound      [Lanes]Inbound
}
