package fi

import "slices"

// Info describes one endpoint, its domain and its fabric (struct fi_info). As
// hints, zero values are wildcards and nil attributes are absent; what
// fi_getinfo returns has all five attributes.
type Info struct {
	Caps       uint64
	Mode       uint64
	AddrFormat AddrFormat
	// SrcAddr and DestAddr are raw addresses in AddrFormat. FI_ADDR_STR
	// addresses end with a NUL byte, which their length counts.
	SrcAddr  []byte
	DestAddr []byte
	// Handle is the object that C's handle field refers to, or nil.
	Handle any
	Tx     *TxAttr
	Rx     *RxAttr
	EP     *EPAttr
	Domain *DomainAttr
	Fabric *FabricAttr
	// NIC is the interface, which hints have not; nil where it is not known.
	NIC *NIC
}

// TxAttr describes a transmit context (struct fi_tx_attr).
type TxAttr struct {
	Caps        uint64
	Mode        uint64
	OpFlags     uint64
	MsgOrder    uint64
	CompOrder   uint64
	InjectSize  uint64 // bytes
	Size        uint64 // operations
	IOVLimit    uint64 // entries
	RMAIOVLimit uint64 // entries
	TClass      uint32
}

// RxAttr describes a receive context (struct fi_rx_attr).
type RxAttr struct {
	Caps              uint64
	Mode              uint64
	OpFlags           uint64
	MsgOrder          uint64
	CompOrder         uint64
	TotalBufferedRecv uint64 // bytes
	Size              uint64 // operations
	IOVLimit          uint64 // entries
}

// EPAttr describes an endpoint (struct fi_ep_attr).
type EPAttr struct {
	Type            EPType
	Protocol        Protocol
	ProtocolVersion uint32
	MaxMsgSize      uint64 // bytes
	MsgPrefixSize   uint64 // bytes
	MaxOrderRAWSize uint64 // bytes
	MaxOrderWARSize uint64 // bytes
	MaxOrderWAWSize uint64 // bytes
	MemTagFormat    uint64
	TxCtxCnt        uint64
	RxCtxCnt        uint64
	// AuthKeySize is C's auth_key_size. It differs from len(AuthKey) only
	// where C passes a size without a key.
	AuthKeySize uint64
	AuthKey     []byte
}

// DomainAttr describes a domain (struct fi_domain_attr). The last five fields
// came after libfabric 1.17.
type DomainAttr struct {
	// Domain is an opened domain, or nil.
	Domain          any
	Name            string
	Threading       Threading
	ControlProgress Progress
	DataProgress    Progress
	ResourceMgmt    ResourceMgmt
	AVType          AVType
	MRMode          MRMode
	MRKeySize       uint64 // bytes
	CQDataSize      uint64 // bytes
	CQCnt           uint64
	EPCnt           uint64
	TxCtxCnt        uint64
	RxCtxCnt        uint64
	MaxEPTxCtx      uint64
	MaxEPRxCtx      uint64
	MaxEPSTxCtx     uint64
	MaxEPSRxCtx     uint64
	CntrCnt         uint64
	MRIOVLimit      uint64
	Caps            uint64
	Mode            uint64
	// AuthKeySize is C's auth_key_size, as in [EPAttr].
	AuthKey     []byte
	AuthKeySize uint64
	MaxErrData  uint64 // bytes
	MRCnt       uint64
	TClass      uint32

	MaxEPAuthKey    uint64
	MaxGroupID      uint32
	MaxCntrValue    uint64
	MaxErrCntrValue uint64
}

// FabricAttr describes a fabric and its provider (struct fi_fabric_attr).
type FabricAttr struct {
	// Fabric is an opened fabric, or nil.
	Fabric      any
	Name        string
	ProvName    string
	ProvVersion uint32
	APIVersion  uint32
}

// Clone returns a deep copy. References to objects (Handle, Domain.Domain,
// Fabric.Fabric) are copied as references. A nil Info has a nil clone.
func (i *Info) Clone() *Info {
	if i == nil {
		return nil
	}
	c := *i
	c.SrcAddr = slices.Clone(i.SrcAddr)
	c.DestAddr = slices.Clone(i.DestAddr)
	c.Tx = shallow(i.Tx)
	c.Rx = shallow(i.Rx)
	c.EP = shallow(i.EP)
	if c.EP != nil {
		c.EP.AuthKey = slices.Clone(i.EP.AuthKey)
	}
	c.Domain = shallow(i.Domain)
	if c.Domain != nil {
		c.Domain.AuthKey = slices.Clone(i.Domain.AuthKey)
	}
	c.Fabric = shallow(i.Fabric)
	c.NIC = shallow(i.NIC)
	if c.NIC != nil {
		c.NIC.PCI = shallow(i.NIC.PCI)
	}
	return &c
}

// shallow copies what p points to.
func shallow[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
