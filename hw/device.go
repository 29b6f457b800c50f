package hw

// Devices whose interfaces peers know by a name (Config.Resolve of the backends) have addresses of their own beside the
// names. What keeps a key of theirs for longer than a connection lasts needs them, and what is here.

// Device is what an Iface of such a device implements.
type Device interface {
	// DeviceAddress is the interface's address on the device. No other interface ever has it. Constant.
	DeviceAddress() []byte
	// CheckDevice checks that b is the address of an interface of a device of the same kind. ErrInvalid: it is not.
	CheckDevice(b []byte) error
}

// DevicePeer is what its endpoints implement.
type DevicePeer interface {
	// DeviceAddress is that of the peer's interface. Constant.
	DeviceAddress() []byte
}

// Lasting is what a Memory implements whose key peers may keep longer than the region is there.
type Lasting interface {
	// Keep has the key name this region alone as long as the memory domain is open: also when it is closed no region
	// with some of its memory gets the key. False: that cannot be promised.
	Keep() bool
}

// KeyReader is what a MemoryDomain of such a device implements.
type KeyReader interface {
	// KeyRegion is what a key of UnpackKey says of its region: Base, Len and Access.
	KeyRegion(k RemoteKey) Region
}
