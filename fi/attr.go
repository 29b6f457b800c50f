package fi

// AVAttr describes an address vector (struct fi_av_attr).
type AVAttr struct {
	Type      AVType
	RxCtxBits int
	Count     uint64 // expected number of addresses
	EPPerNode uint64
	// Name is the name of a shared address vector, empty for a private one.
	Name string
	// MapAddr is where a named table is mapped, 0 where the provider chooses.
	MapAddr uintptr
	Flags   uint64
}

// CQAttr describes a completion queue (struct fi_cq_attr).
type CQAttr struct {
	Size            uint64 // entries; 0 means the provider's default
	Flags           uint64
	Format          CQFormat
	WaitObj         WaitObj
	SignalingVector int
	WaitCond        CQWaitCond
	// WaitSet is the wait set of WaitObj WaitSet, or nil.
	WaitSet any
}

// CntrAttr describes a counter (struct fi_cntr_attr).
type CntrAttr struct {
	Events  CntrEvents
	WaitObj WaitObj
	// WaitSet is the wait set of WaitObj WaitSet, or nil.
	WaitSet any
	Flags   uint64
}

// EQAttr describes an event queue (struct fi_eq_attr).
type EQAttr struct {
	Size            uint64 // entries; 0 means the provider's default
	Flags           uint64
	WaitObj         WaitObj
	SignalingVector int
	// WaitSet is the wait set of WaitObj WaitSet, or nil.
	WaitSet any
}

// WaitAttr describes a wait set (struct fi_wait_attr).
type WaitAttr struct {
	WaitObj WaitObj
	Flags   uint64
}

// PollAttr describes a poll set (struct fi_poll_attr).
type PollAttr struct {
	Flags uint64
}

// IOVec is a part of a scattered buffer, with the layout of struct iovec. Base is an address, not a reference: the
// holder of an IOVec of Go memory keeps that memory alive and in place.
type IOVec struct {
	Base uintptr
	Len  uint64 // bytes
}

// MRAttr describes a memory region (struct fi_mr_attr).
type MRAttr struct {
	IOV          []IOVec
	Access       uint64 // Send, Recv, Read, Write, RemoteRead, RemoteWrite
	Offset       uint64
	RequestedKey uint64
	Context      uintptr
	AuthKey      []byte
	AuthKeySize  uint64 // C's auth_key_size, as in [EPAttr]; 0: the length of AuthKey
	AV           any    // in the place of AuthKey in a domain with AVAuthKey: the *provider.AV of struct fi_mr_auth_key
	Src          Addr   // of struct fi_mr_auth_key
	Iface        HMEMIface
	Device       uint64
	DMABuf       *DMABuf // instead of IOV, with the flag MRDMABuf
}

// DMABuf is a range of a dma-buf (struct fi_mr_dmabuf).
type DMABuf struct {
	FD     int
	Offset uint64  // bytes, of the range's first
	Len    uint64  // bytes
	Base   uintptr // what the application calls the dma-buf's first byte, 0 if it has not mapped it
}

// RMAIOVec is a piece of a peer's registered memory (struct fi_rma_iov).
type RMAIOVec struct {
	Addr uint64
	Len  uint64
	Key  uint64
}
