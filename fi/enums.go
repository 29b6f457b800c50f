package fi

// Version packs an API or provider version as FI_VERSION does.
func Version(major, minor uint32) uint32 { return major<<16 | minor&0xFFFF }

// Major returns the major part of a version packed by [Version].
func Major(v uint32) uint32 { return v >> 16 }

// Minor returns the minor part of a version packed by [Version].
func Minor(v uint32) uint32 { return v & 0xFFFF }

// Addr is an address vector's handle for a peer (fi_addr_t).
type Addr uint64

// Special values of [Addr].
const (
	AddrUnspec   Addr = 1<<64 - 1
	AddrNotAvail Addr = 1<<64 - 1
)

// KeyNotAvail is the memory key of a region whose raw key must be used.
const KeyNotAvail uint64 = 1<<64 - 1

// SharedContext as TxCtxCnt or RxCtxCnt of [EPAttr] asks for an endpoint that
// uses a shared transmit or receive context.
const SharedContext uint64 = 1<<64 - 1

// EPType is the type of an endpoint.
type EPType int32

// Endpoint types.
const (
	EPUnspec EPType = iota
	EPMsg
	EPDgram
	EPRDM
	EPSockStream
	EPSockDgram
)

// AVType is the type of an address vector.
type AVType int32

// Address vector types.
const (
	AVUnspec AVType = iota
	AVMap
	AVTable
)

// MRMode is a set of requirements on memory registration. MRBasic and
// MRScalable are the exclusive modes of API versions before 1.5.
type MRMode int32

// Memory registration modes.
const (
	MRUnspec     MRMode = 0
	MRBasic      MRMode = 1 << 0
	MRScalable   MRMode = 1 << 1
	MRLocal      MRMode = 1 << 2
	MRRaw        MRMode = 1 << 3
	MRVirtAddr   MRMode = 1 << 4
	MRAllocated  MRMode = 1 << 5
	MRProvKey    MRMode = 1 << 6
	MRMMUNotify  MRMode = 1 << 7
	MRRMAEvent   MRMode = 1 << 8
	MREndpoint   MRMode = 1 << 9
	MRHMEM       MRMode = 1 << 10
	MRCollective MRMode = 1 << 11
)

// Progress says which threads move outstanding operations forward.
type Progress int32

// Progress models.
const (
	ProgressUnspec Progress = iota
	ProgressAuto
	ProgressManual
)

// Threading is the level of serialization an application promises.
type Threading int32

// Threading models.
const (
	ThreadUnspec Threading = iota
	ThreadSafe
	ThreadFID
	ThreadDomain
	ThreadCompletion
	ThreadEndpoint
)

// ResourceMgmt says whether the provider protects its queues from overrun.
type ResourceMgmt int32

// Resource management models.
const (
	RMUnspec ResourceMgmt = iota
	RMDisabled
	RMEnabled
)

// AddrFormat is the format of transport addresses.
type AddrFormat uint32

// Address formats.
const (
	FormatUnspec AddrFormat = iota
	Sockaddr
	SockaddrIn
	SockaddrIn6
	SockaddrIB
	AddrPSMX
	AddrGNI
	AddrBGQ
	AddrMLX
	AddrStr
	AddrPSMX2
	AddrIBUD
	AddrEFA
	AddrPSMX3
	AddrOPX
	AddrCXI
)

// Protocol identifies an endpoint's wire protocol.
type Protocol uint32

// Protocols of other providers. Two providers that return the same protocol and version must interoperate, so weft
// uses none of these, see [ProtoWeft], unless FI_WEFT_NAME has it answer in another's place.
const (
	ProtoUnspec Protocol = iota
	ProtoRDMACMIBRC
	ProtoIWARP
	ProtoIBUD
	ProtoPSMX
	ProtoUDP
	ProtoSockTCP
	ProtoMXM
	ProtoIWARPRDM
	ProtoIBRDM
	ProtoGNI
	ProtoRXM
	ProtoRXD
	ProtoMLX
	ProtoNetworkDirect
	ProtoPSMX2
	ProtoSHM
	ProtoMRAIL
	ProtoRStream
	ProtoRDMACMIBXRC
	ProtoEFA
	ProtoPSMX3
	ProtoRXMTCP
	ProtoOPX
	ProtoCXI
	ProtoXNet
)

// ProvSpecific marks provider-specific values of enumerations.
const ProvSpecific = 1 << 31

// ProtoWeft is weft's own protocol. It has not the provider-specific bit: clients that keep
// a protocol in an int would have a negative number.
const ProtoWeft Protocol = 'w'<<24 | 'e'<<16 | 'f'<<8 | 't'

// Traffic classes (TClass fields of [TxAttr] and [DomainAttr]).
const (
	TCUnspec          uint32 = 0
	TCDSCP            uint32 = 0x100
	TCLabel           uint32 = 0x200
	TCBestEffort      uint32 = 0x200
	TCLowLatency      uint32 = 0x201
	TCDedicatedAccess uint32 = 0x202
	TCBulkData        uint32 = 0x203
	TCScavenger       uint32 = 0x204
	TCNetworkCtrl     uint32 = 0x205
)

// dscpOfLabel are the code points of the labels, in their order: default forwarding and class
// selector 6 (RFC 2474), the classes that RFC 4594 gives low-latency and high-throughput data,
// expedited forwarding (RFC 3246), lower effort (RFC 8622).
var dscpOfLabel = [...]uint8{
	TCBestEffort - TCLabel:      0,
	TCLowLatency - TCLabel:      18,
	TCDedicatedAccess - TCLabel: 46,
	TCBulkData - TCLabel:        10,
	TCScavenger - TCLabel:       1,
	TCNetworkCtrl - TCLabel:     48,
}

// DSCP is the code point of differentiated services of a traffic class, 0 to 63: the one that a
// class made by fi_tc_dscp_set names, or that of a label. false: it is no traffic class.
func DSCP(class uint32) (uint8, bool) {
	switch {
	case class == TCUnspec:
		return 0, true
	case class&^0x3f == TCDSCP:
		return uint8(class & 0x3f), true
	case class >= TCLabel && class-TCLabel < uint32(len(dscpOfLabel)):
		return dscpOfLabel[class-TCLabel], true
	}
	return 0, false
}

// CQFormat is the layout of a completion queue's entries.
type CQFormat int32

// Completion queue formats.
const (
	CQFormatUnspec CQFormat = iota
	CQFormatContext
	CQFormatMsg
	CQFormatData
	CQFormatTagged
)

// CQWaitCond is the condition under which a blocking CQ read returns.
type CQWaitCond int32

// Completion queue wait conditions.
const (
	CQCondNone CQWaitCond = iota
	CQCondThreshold
)

// CntrEvents is what a counter counts.
type CntrEvents int32

// Counter events.
const CntrEventsComp CntrEvents = 0

// WaitObj is the kind of object an application waits on.
type WaitObj int32

// Wait objects.
const (
	WaitNone WaitObj = iota
	WaitUnspec
	WaitSet
	WaitFD
	WaitMutexCond
	WaitYield
	WaitPollFD
)

// HMEMIface is a kind of memory.
type HMEMIface int32

// Memory interfaces.
const (
	HMEMSystem HMEMIface = iota
	HMEMCUDA
	HMEMROCR
	HMEMZE
	HMEMNeuron
	HMEMSynapseAI
)

// EQEvent is an event of an event queue.
type EQEvent uint32

// Event queue events.
const (
	Notify EQEvent = iota
	ConnReq
	Connected
	Shutdown
	MRComplete
	AVComplete
	JoinComplete
)
