package loopback

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// MemoryDomain registers memory for the interfaces that are opened on it. Each
// of them publishes the regions that peers may access in its segment, so that
// peers need neither the process nor a message. It implements hw.MemoryDomain.
type MemoryDomain struct {
	// mu guards everything. It is not on the data path: regions and interfaces
	// come and go by control operations.
	mu      sync.Mutex
	ifaces  map[*Iface]bool
	regions map[uint64]*region // by name
}

// region is a registered region. It implements hw.Memory.
type region struct {
	about  hw.Region // immutable
	domain *MemoryDomain
	places map[*Iface]uint32 // entries of key tables; domain.mu
}

// NewMemoryDomain makes a memory domain.
func NewMemoryDomain() *MemoryDomain {
	return &MemoryDomain{ifaces: map[*Iface]bool{}, regions: map[uint64]*region{}}
}

const (
	packedKeyBytes = 8
	maxOneSided    = 1 << 40 // bytes of one operation
)

// Attr says that registering costs nothing, and that local memory needs none.
func (d *MemoryDomain) Attr() hw.MDAttr {
	return hw.MDAttr{MaxLen: maxOneSided, MaxKey: packedKeyBytes, Device: "shm"}
}

const allAccess = hw.LocalWrite | hw.RemoteRead | hw.RemoteWrite | hw.RemoteAtomic

// Register makes a region known. An interface whose table is full does not
// publish it: its peers get hw.ErrKey from FindKey. Errors: hw.ErrInvalid for an
// empty or wrapping range, unknown rights and a name that is taken.
func (d *MemoryDomain) Register(r hw.Region) (hw.Memory, error) {
	addr := uint64(uintptr(r.Addr))
	if r.Len <= 0 || addr+uint64(r.Len) < addr || r.Base+uint64(r.Len) < r.Base || r.Access&^allAccess != 0 {
		return nil, fmt.Errorf("loopback: register %d bytes at %#x, rights %#x: %w", r.Len, addr, r.Access,
			hw.ErrInvalid)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for !r.Named {
		var b [8]byte
		rand.Read(b[:]) // never fails
		r.Name = binary.LittleEndian.Uint64(b[:])
		r.Named = d.regions[r.Name] == nil
	}
	if d.regions[r.Name] != nil {
		return nil, fmt.Errorf("loopback: register a region named %#x, which there is: %w", r.Name, hw.ErrInvalid)
	}
	m := &region{about: r, domain: d, places: map[*Iface]uint32{}}
	d.regions[r.Name] = m
	for i := range d.ifaces {
		m.publish(i)
	}
	return m, nil
}

// Alloc is not offered: any memory will do.
func (d *MemoryDomain) Alloc(hw.Region) (hw.Memory, error) {
	return nil, fmt.Errorf("loopback: allocate memory: %w", hw.ErrInvalid)
}

// UnpackKey reads a packed key. Whether there is such a region shows when it
// is used.
func (d *MemoryDomain) UnpackKey(packed []byte) (hw.RemoteKey, error) {
	if len(packed) != packedKeyBytes {
		return hw.RemoteKey{}, fmt.Errorf("loopback: key of %d bytes: %w", len(packed), hw.ErrInvalid)
	}
	return hw.RemoteKey{keyName: binary.LittleEndian.Uint64(packed)}, nil
}

// Close forgets the regions that are left.
func (d *MemoryDomain) Close() error {
	d.mu.Lock()
	regions := maps.Clone(d.regions)
	d.mu.Unlock()
	for _, m := range regions {
		_ = m.Close()
	}
	return nil
}

// join publishes the regions of the domain at an interface that opens.
func (d *MemoryDomain) join(i *Iface) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ifaces[i] = true
	for _, m := range d.regions {
		m.publish(i)
	}
}

// leave withdraws them from one that closes.
func (d *MemoryDomain) leave(i *Iface) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.ifaces, i)
	end := time.Now().Add(claimPatience)
	for _, m := range d.regions {
		m.withdraw(i, end)
	}
}

// Region is what was registered.
func (m *region) Region() hw.Region { return m.about }

// PackKey appends the name.
func (m *region) PackKey(to []byte) []byte {
	return binary.LittleEndian.AppendUint64(to, m.about.Name)
}

// Close withdraws the region everywhere and waits for peers that are at it.
func (m *region) Close() error {
	m.domain.mu.Lock()
	defer m.domain.mu.Unlock()
	if m.domain.regions[m.about.Name] != m {
		return nil
	}
	delete(m.domain.regions, m.about.Name)
	end := time.Now().Add(claimPatience)
	for i := range m.places {
		m.withdraw(i, end)
	}
	return nil
}
