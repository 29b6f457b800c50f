package hw

import "unsafe"

// Segment is a piece of memory in this process.
type Segment struct {
	Addr   unsafe.Pointer // may be C memory
	Len    int
	Memory Memory // its registration; required by a zcopy operation if the memory domain has MDLocal, else may be nil
}

// RemoteSegment is a piece of memory of a peer, as the peer named it.
type RemoteSegment struct {
	Addr uint64
	Len  uint64
}

// Access is what may be done to registered memory.
type Access uint32

// Rights. What the own process reads needs none.
const (
	LocalWrite   Access = 1 << iota // by operations of this process
	RemoteRead                      // by peers' gets
	RemoteWrite                     // by peers' puts
	RemoteAtomic                    // by peers' atomics
)

// Region is memory to be registered.
type Region struct {
	Addr   unsafe.Pointer
	Len    int // bytes, at least 1
	Access Access
	// Base is the address by which peers name the first byte: the real one,
	// or 0 where they count from the start of the region.
	Base uint64
	// Name is a number of the caller's choice by which peers may find the
	// region if Named, where the interfaces have CapNamedKeys. Unique among
	// the named regions of a memory domain.
	Name  uint64
	Named bool
	// Device: of the memory of a device, which has no address here. Peers find by its name that it is there
	// ([KeyDirectory]), and nothing more.
	Device bool
	// DMABuf has the memory, which is another device's, for a domain with MDDMABuf; nil: it is the process's. Addr is
	// then a name that segments of operations use, at which nothing is.
	DMABuf *DMABuf
}

// DMABuf is where a region is in a dma-buf: memory of a device that the kernel hands around.
type DMABuf struct {
	FD     int    // its descriptor, the caller's, which is needed until Register returns
	Offset uint64 // of the region's first byte in it
	// At is the address by which the domain's device is to know the first byte. It is as far into a page as Offset.
	At uint64
}

// MDCap is a set of abilities of a memory domain.
type MDCap uint32

// Abilities of a memory domain.
const (
	MDLocal  MDCap = 1 << iota // zcopy operations need the local memory registered
	MDCost                     // registering takes long (pins pages): it is worth keeping registrations
	MDAlloc                    // MemoryDomain.Alloc
	MDDMABuf                   // the device reaches memory of other devices (Region.DMABuf)
)

// MDAttr describes a memory domain.
type MDAttr struct {
	Caps   MDCap
	MaxLen uint64 // bytes of one region
	MaxKey int    // bytes of a packed remote key
	Device string
}

// MemoryDomain is where memory is registered for the interfaces that are
// opened on it. Its methods may be called from any thread; they are control
// operations and may take locks.
type MemoryDomain interface {
	// Attr says what the domain can do. Constant.
	Attr() MDAttr
	// Register makes memory known to the device and, as far as its rights say,
	// to peers. Errors: ErrInvalid (no length, unknown rights, a range that
	// wraps), ErrNoResource (no room for another region, or beyond the limit
	// on locked memory), ErrPermission, ErrNoDMABuf.
	Register(r Region) (Memory, error)
	// Alloc allocates and registers zeroed memory, at r.Len and with r's
	// rights; r.Addr is ignored. Errors: as Register's, ErrInvalid without MDAlloc.
	Alloc(r Region) (Memory, error)
	// UnpackKey reads what a peer's Memory.PackKey wrote. Errors: ErrInvalid.
	UnpackKey(packed []byte) (RemoteKey, error)
	// Close ends the domain; its regions and interfaces were closed before.
	Close() error
}

// Memory is a registered region.
type Memory interface {
	// Region is what was registered.
	Region() Region
	// PackKey appends the remote key, in the form that a peer unpacks.
	PackKey(to []byte) []byte
	// Close ends the registration. When it returns no peer accesses the memory
	// and no later access is let through. Memory from Alloc is freed.
	Close() error
}

// Placed is where registered memory is for the device.
type Placed struct {
	Addr  uint64 // here
	At    uint64 // for the device
	Space uint32 // in which of the device's address spaces
	Valid bool
}

// Placer is what a Memory may implement.
type Placer interface {
	// Place says where the first byte of the region is. Constant.
	Place() Placed
}

// RemoteKey is an unpacked remote key: the transport's own words. It is a
// value and needs no release. The zero key names nothing.
type RemoteKey [4]uint64
