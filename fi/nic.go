package fi

// NIC describes a network interface (struct fid_nic). Text that is not known is
// empty, and numbers are 0.
type NIC struct {
	Name          string // of the interface, or of the RDMA device that stands on it
	DeviceID      string
	DeviceVersion string
	VendorID      string
	Driver        string
	Firmware      string
	PCI           *PCIAttr // nil: on no PCI bus
	Address       string   // of the link layer
	MTU           uint64   // bytes
	Speed         uint64   // bits per second
	State         LinkState
	NetworkType   string
}

// PCIAttr is the address of a PCI function (struct fi_pci_attr).
type PCIAttr struct {
	Domain                uint16
	Bus, Device, Function uint8
}

// LinkState is the state of a link (enum fi_link_state).
type LinkState int32

// States of a link.
const (
	LinkUnknown LinkState = iota
	LinkDown
	LinkUp
)
