package hot

import "structs"

// Endpoints.

// Bits of [EP].Flags.
const (
	EPExclusive   = 1  // one thread at a time uses it, so no lease of a stripe is taken; as RxExclusive
	EPTxAlways    = 2  // transmits write completions by default (no FI_SELECTIVE_COMPLETION)
	EPFast        = 4  // the data plane may post: the endpoint is enabled, and no order has it wait
	EPMatches     = 8  // its messages are matched with receives of weft's own, not with an owner's (fi_peer(3))
	EPRxSelective = 16 // receives complete only with FI_COMPLETION
	EPGated       = 32 // its match transport has a gate
	EPCtxShift    = 24 // above it: how many of an fi_addr's high bits name a receive context
)

// PolledEnough is the value of [EP].Polled that says that the application makes progress by itself: so many polls of
// the endpoint since the progress thread asked last. Without a thread the count stays there. All its accesses are
// relaxed, and lost additions do not matter.
const PolledEnough = 16

// Inbound is one of the endpoint's inbound rings.
//
//weft:name weft_inbound
type Inbound struct {
	_    structs.HostLayout
	Ring Ring   // consumer's view; immutable after enable
	Head uint64 `c:"_Atomic"` // position of the next message. As the next two: by mpsc.SetHead and Pass, release
	At   uint64 `c:"_Atomic"` // address of its slot; pollers load, acquire
	Want uint64 `c:"_Atomic"` // the sequence word of that slot when it is ready, without owner; pollers load
	End  uint64 // address behind the ring
	_    uint64
}

// EP is an endpoint.
//
//weft:name weft_hot_ep
type EP struct {
	_ structs.HostLayout
	// line 0: immutable after enable, but for what says otherwise
	Peers uintptr `c:"struct weft_hot_peer *"` // by fi_addr, rotated so that the receive context comes last
	// peers that there is memory for; Go makes it larger, with release; data plane, acquire
	PeerLimit  uint64  `c:"_Atomic"`
	TxCQ       uintptr `c:"struct weft_hot_cq *"` // NULL: none
	TxCntr     uintptr `c:"struct weft_hot_cntr *"`
	Stripes    uintptr `c:"struct weft_hot_stripe *"` // StripeMask+1, and that of the progress lease's holder
	StripeMask uint32
	Flags      uint32 `c:"_Atomic"` // EP*; Go changes EPFast, with release; relaxed loads do
	InjectMax  uint32 // bytes
	EagerMax   uint32 // bytes that go through one bounce buffer
	Handle     uint64 // Go's
	// line 1
	StatsThreads uintptr `c:"weft_stat *"` // WEFT_STAT_LINES lines of counters (stats.h)
	// Go: release; another one, which never has work, when the endpoint is closed
	Rx          uintptr `c:"_Atomic(struct weft_hot_rx *)"`
	RxRings     uintptr `c:"_Atomic uint32_t *"`       // of the own segment
	RxState     uintptr `c:"_Atomic uint32_t *"`       // of the own segment, armed is the word after it
	Sources     uintptr `c:"struct weft_hot_source *"` // source_limit of them
	RxCQ        uintptr `c:"struct weft_hot_cq *"`
	SourceLimit uint32
	Polled      uint32  `c:"_Atomic"`     // polls, up to PolledEnough; pollers add, a thread sets 0
	StatsRx     uintptr `c:"weft_stat *"` // the lease holder's counters; immutable after enable
	// line 2: one-sided operations, immutable after enable
	Regions      uintptr `c:"uintptr_t"` // of the word with the domain's [Region]s; 0, also later: the runtime serves
	_            uint32
	PendingCount uint32  // for each stripe; 0: the data plane posts no one-sided operations
	Pendings     uintptr `c:"struct weft_hot_pending *"`
	WriteCntr    uintptr `c:"struct weft_hot_cntr *"`
	ReadCntr     uintptr `c:"struct weft_hot_cntr *"`
	CopyMax      uint64  // bytes that a post may copy to or from a peer's memory (dataplane.RMA)
	StartTime    uint64  // of this process, as claims have it
	PID          uint32  // of this process
	DelegateMin  uint32  // bytes from which Go may delegate a copy to its target, 0: none
	// line 3: immutable after enable, but for what two of them point at, and what is counted
	Transport uintptr `c:"struct weft_hot_transport *"` // NULL: none that the data plane polls
	// with transport, by peers' lines; runtime: release; NULL: ask it
	Paths uintptr `c:"_Atomic(struct weft_hot_path *) *"`
	// with transport, source_limit of them, by its numbers
	TransportSources uintptr `c:"struct weft_hot_transport_source *"`
	// copies without asking; set by the runtime; relaxed
	DelegateRest uint32 `c:"_Atomic"`
	// bytes of the message of an RTS that is read from its sender's memory without the runtime; 0: none
	ReadMax   uint32
	CopiedMax uint64 // bytes that are copied before the runtime counts them; UINT64_MAX: all
	// those bytes; posting threads add, Go takes them away; all relaxed, and lost ones do not matter
	Copied uint64 `c:"_Atomic"`
	// with transport, 1: polls include it, and do until nothing is corked there. Go stores; relaxed
	TransportActive uint32 `c:"_Atomic"`
	Number          uint32 // among the endpoints of its receive context
	// counts receives, NULL: none; stored once, under the lease after enable
	RxCntr uintptr `c:"struct weft_hot_cntr *"`
	// line 4: immutable after enable
	Notes       uintptr `c:"struct weft_hot_notes *"` // NULL: notifications are Go's
	Requests    uintptr `c:"uintptr_t"`               // Go's dataplane.Requests
	Links       uintptr `c:"uintptr_t"`               // of dataplane.Link, by numbers of links
	RTSMax      uint64  // bytes of a message that the data plane sends an RTS for; 0: none
	RTSBytesMax uint64  // bytes of those before Go counts them; UINT64_MAX: all
	RTSBytes    uint64  `c:"_Atomic"` // those bytes; as Copied
	LinkLimit   uint32  `c:"_Atomic"` // links that there is memory for; as PeerLimit
	_           uint32
	Match       uintptr `c:"_Atomic(struct weft_hot_match_transport *)"` // NULL: weft matches. Go: release
	Inbound     [RxRings]Inbound
}
