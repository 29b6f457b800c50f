package fi

// Class is the class of a libfabric object (fid.fclass).
type Class uint64

// Object classes.
const (
	ClassUnspec Class = iota
	ClassFabric
	ClassDomain
	ClassEP
	ClassSEP
	ClassRxCtx
	ClassSRxCtx
	ClassTxCtx
	ClassSTxCtx
	ClassPEP
	ClassInterface
	ClassAV
	ClassMR
	ClassEQ
	ClassCQ
	ClassCntr
	ClassWait
	ClassPoll
	ClassConnReq
	ClassMC
	ClassNIC
	ClassAVSet
	ClassMRCache
	ClassMemMonitor
	ClassPeerCQ
	ClassPeerSRx
	ClassLog
	ClassPeerAV
	ClassPeerAVSet
)

// Command is a command of fi_control.
type Command int32

// Control commands.
const (
	GetFIDFlag Command = iota
	SetFIDFlag
	GetOpsFlag
	SetOpsFlag
	Alias
	GetWait
	Enable
	Backlog
	GetRawMR
	MapRawMR
	UnmapKey
	QueueWork
	CancelWork
	FlushWork
	Refresh
	Dup
	GetWaitObj
	GetVal
	SetVal
	ExportFID
)

// OptEndpoint is the only level of fi_getopt and fi_setopt.
const OptEndpoint = 0

// Opt is an endpoint option of fi_getopt and fi_setopt.
type Opt int32

// Endpoint options.
const (
	OptMinMultiRecv Opt = iota
	OptCMDataSize
	OptBufferedMin
	OptBufferedLimit
	OptSendBufSize
	OptRecvBufSize
	OptTxSize
	OptRxSize
	OptHMEMP2P
	OptXPUTrigger
)

// Values of the endpoint option [OptHMEMP2P].
const (
	HMEMP2PEnabled int32 = iota
	HMEMP2PRequired
	HMEMP2PPreferred
	HMEMP2PDisabled
)

// Param is the type of a configuration variable as fi_param_define takes it.
type Param int32

// Parameter types.
const (
	ParamString Param = iota
	ParamInt
	ParamBool
	ParamSizeT
)
