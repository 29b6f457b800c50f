package fi

// Capabilities and flags that came after libfabric 1.17. TaggedDirectedRecv,
// TaggedMultiRecv and ExactDirectedRecv reuse bits that had other meanings in
// the 1.x series (HMEMHostAlloc, HMEMDeviceOnly, VariableMsg).
const (
	Rescan             uint64 = 1 << 35
	MRDMABuf           uint64 = 1 << 40
	MRSingleUse        uint64 = 1 << 41
	FirewallAddr       uint64 = 1 << 42
	TaggedDirectedRecv uint64 = 1 << 45
	TaggedMultiRecv    uint64 = 1 << 46
	ExactDirectedRecv  uint64 = 1 << 48
	AuthKey            uint64 = 1 << 57
)

// AVAuthKey as DomainAttr.AuthKeySize asks for keys kept in the address vector.
const AVAuthKey uint64 = 1<<64 - 1

// Address formats that came after libfabric 1.17.
const (
	AddrUCX    AddrFormat = 16
	SockaddrIP AddrFormat = 17
)

// ProtoCXIRNR is a protocol of cxi that came after libfabric 1.17.
const ProtoCXIRNR Protocol = 29

// ProgressControlUnified is manual progress by an application that also
// serializes control operations.
const ProgressControlUnified Progress = 3

// CntrEventsBytes counts bytes instead of completions.
const CntrEventsBytes CntrEvents = 1

// Well-known values of EPAttr.MemTagFormat since libfabric 2.0.
const (
	TagBits      uint64 = 0
	TagMPI       uint64 = 1
	TagCCL       uint64 = 2
	TagMaxFormat uint64 = 1 << 16
)

// Endpoint options that came after libfabric 1.17.
const (
	OptCUDAAPIPermitted Opt = iota + 10
	OptSharedMemoryPermitted
	OptMaxMsgSize
	OptMaxTaggedSize
	OptMaxRMASize
	OptMaxAtomicSize
	OptInjectMsgSize
	OptInjectTaggedSize
	OptInjectRMASize
	OptInjectAtomicSize
	OptFirewallAddr
)
