package fi

// Capabilities, operation flags and completion flags. They share one 64-bit
// space: bits that grow from 1 upwards are common to several operations, bits
// that grow from 59 downwards belong to a single call or class of calls.
const (
	Msg        uint64 = 1 << 1
	RMA        uint64 = 1 << 2
	Tagged     uint64 = 1 << 3
	Atomic     uint64 = 1 << 4
	Atomics    uint64 = Atomic
	Multicast  uint64 = 1 << 5
	Collective uint64 = 1 << 6

	Read        uint64 = 1 << 8
	Write       uint64 = 1 << 9
	Recv        uint64 = 1 << 10
	Send        uint64 = 1 << 11
	Transmit    uint64 = Send
	RemoteRead  uint64 = 1 << 12
	RemoteWrite uint64 = 1 << 13

	MultiRecv    uint64 = 1 << 16
	RemoteCQData uint64 = 1 << 17
	More         uint64 = 1 << 18
	Peek         uint64 = 1 << 19
	Trigger      uint64 = 1 << 20
	Fence        uint64 = 1 << 21
	Priority     uint64 = 1 << 22

	Completion       uint64 = 1 << 24
	Event            uint64 = Completion
	Inject           uint64 = 1 << 25
	InjectComplete   uint64 = 1 << 26
	TransmitComplete uint64 = 1 << 27
	DeliveryComplete uint64 = 1 << 28
	Affinity         uint64 = 1 << 29
	CommitComplete   uint64 = 1 << 30
	MatchComplete    uint64 = 1 << 31

	PeerTransfer   uint64 = 1 << 36
	AVUserID       uint64 = 1 << 41
	Peer           uint64 = 1 << 43
	XPUTrigger     uint64 = 1 << 44
	HMEMHostAlloc  uint64 = 1 << 45
	HMEMDeviceOnly uint64 = 1 << 46
	HMEM           uint64 = 1 << 47
	VariableMsg    uint64 = 1 << 48
	RMAPmem        uint64 = 1 << 49
	SourceErr      uint64 = 1 << 50
	LocalComm      uint64 = 1 << 51
	RemoteComm     uint64 = 1 << 52
	SharedAV       uint64 = 1 << 53
	ProvAttrOnly   uint64 = 1 << 54
	NumericHost    uint64 = 1 << 55
	RMAEvent       uint64 = 1 << 56
	Source         uint64 = 1 << 57
	NamedRxCtx     uint64 = 1 << 58
	DirectedRecv   uint64 = 1 << 59
)

// Flags of single calls, which reuse the bits of capabilities.
const (
	// Claim and Discard are flags of receives after a successful Peek.
	Claim   uint64 = 1 << 59
	Discard uint64 = 1 << 58

	// SelectiveCompletion is a flag of fi_ep_bind with a CQ.
	SelectiveCompletion uint64 = 1 << 59

	// Symmetric, SyncErr and Universe are flags of address vector calls and of
	// AVAttr.Flags.
	Symmetric uint64 = 1 << 59
	SyncErr   uint64 = 1 << 58
	Universe  uint64 = 1 << 57

	// RegMR is a flag of fi_domain_bind.
	RegMR uint64 = 1 << 59

	// FetchAtomic and CompareAtomic are flags of fi_query_atomic.
	FetchAtomic   uint64 = 1 << 58
	CompareAtomic uint64 = 1 << 59
)

// Mode bits: what a provider may require of the application. weft requires
// none of them.
const (
	Context         uint64 = 1 << 59
	MsgPrefix       uint64 = 1 << 58
	AsyncIOV        uint64 = 1 << 57
	RxCQData        uint64 = 1 << 56
	LocalMR         uint64 = 1 << 55
	NotifyFlagsOnly uint64 = 1 << 54
	RestrictedComp  uint64 = 1 << 53
	Context2        uint64 = 1 << 52
	BufferedRecv    uint64 = 1 << 51
)

// Message order bits (TxAttr.MsgOrder, RxAttr.MsgOrder) and, where OrderData
// and OrderStrict apply, completion order bits (CompOrder).
const (
	OrderNone uint64 = 0
	OrderRAR  uint64 = 1 << 0
	OrderRAW  uint64 = 1 << 1
	OrderRAS  uint64 = 1 << 2
	OrderWAR  uint64 = 1 << 3
	OrderWAW  uint64 = 1 << 4
	OrderWAS  uint64 = 1 << 5
	OrderSAR  uint64 = 1 << 6
	OrderSAW  uint64 = 1 << 7
	OrderSAS  uint64 = 1 << 8

	OrderStrict uint64 = 0x1FF
	OrderData   uint64 = 1 << 16

	OrderRMARAR    uint64 = 1 << 32
	OrderRMARAW    uint64 = 1 << 33
	OrderRMAWAR    uint64 = 1 << 34
	OrderRMAWAW    uint64 = 1 << 35
	OrderAtomicRAR uint64 = 1 << 36
	OrderAtomicRAW uint64 = 1 << 37
	OrderAtomicWAR uint64 = 1 << 38
	OrderAtomicWAW uint64 = 1 << 39
)
