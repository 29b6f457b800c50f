package udp

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
)

// MemoryDomain registers memory for the interfaces that are opened on it.
// Peers name a region by a random 64-bit key, and every access is checked for
// range and rights by the thread that takes the packet in. It implements
// hw.MemoryDomain.
type MemoryDomain struct {
	// mu guards regions. A packet of a one-sided operation reads under it,
	// registering writes; it is locked for a search in a map.
	mu      sync.RWMutex
	regions map[uint64]*region // by key
}

// region is a registered region. It implements hw.Memory.
type region struct {
	about  hw.Region // immutable
	key    uint64    // immutable
	domain *MemoryDomain
	// users is how many accesses are under way, and closed that no more may
	// begin: an access counts itself first and reads closed then, Close the
	// other way round (sequentially consistent), so one sees the other.
	users  atomic.Int32
	closed atomic.Bool
}

const (
	packedKeyBytes = 8
	maxOneSided    = 1 << 40 // bytes of one operation
	allAccess      = hw.LocalWrite | hw.RemoteRead | hw.RemoteWrite | hw.RemoteAtomic
)

// NewMemoryDomain makes a memory domain.
func NewMemoryDomain() *MemoryDomain { return &MemoryDomain{regions: map[uint64]*region{}} }

// Attr says that registering costs nothing, and that local memory needs none.
func (d *MemoryDomain) Attr() hw.MDAttr {
	return hw.MDAttr{MaxLen: maxOneSided, MaxKey: packedKeyBytes, Device: "udp"}
}

// Register makes a region known. Errors: hw.ErrInvalid for an empty or wrapping
// range and unknown rights.
func (d *MemoryDomain) Register(r hw.Region) (hw.Memory, error) {
	addr := uint64(uintptr(r.Addr))
	if r.Len <= 0 || addr+uint64(r.Len) < addr || r.Base+uint64(r.Len) < r.Base || r.Access&^allAccess != 0 {
		return nil, fmt.Errorf("udp: register %d bytes at %#x, rights %#x: %w", r.Len, addr, r.Access, hw.ErrInvalid)
	}
	m := &region{about: r, domain: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	for m.key == 0 || d.regions[m.key] != nil {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		m.key = binary.LittleEndian.Uint64(b[:])
	}
	d.regions[m.key] = m
	return m, nil
}

// Alloc is not offered: any memory will do.
func (d *MemoryDomain) Alloc(hw.Region) (hw.Memory, error) {
	return nil, fmt.Errorf("udp: allocate memory: %w", hw.ErrInvalid)
}

// UnpackKey reads a packed key. Whether there is such a region shows when it
// is used.
func (d *MemoryDomain) UnpackKey(packed []byte) (hw.RemoteKey, error) {
	if len(packed) != packedKeyBytes {
		return hw.RemoteKey{}, fmt.Errorf("udp: key of %d bytes: %w", len(packed), hw.ErrInvalid)
	}
	return hw.RemoteKey{binary.LittleEndian.Uint64(packed)}, nil
}

// Close forgets the regions that are left.
func (d *MemoryDomain) Close() error {
	d.mu.Lock()
	var left []*region
	for _, m := range d.regions {
		left = append(left, m)
	}
	d.mu.Unlock()
	for _, m := range left {
		_ = m.Close()
	}
	return nil
}

// enter begins an access by a peer to n bytes at addr, which leave ends. It
// returns where they start in the region, and nil if the peer may not.
func (d *MemoryDomain) enter(key, addr, n uint64, right hw.Access) (m *region, offset uint64) {
	if d == nil {
		return nil, 0
	}
	d.mu.RLock()
	m = d.regions[key]
	d.mu.RUnlock()
	if m == nil {
		return nil, 0
	}
	m.users.Add(1)
	offset = addr - m.about.Base
	if length := uint64(m.about.Len); m.closed.Load() || m.about.Access&right != right || offset > length ||
		n > length-offset {
		m.leave()
		return nil, 0
	}
	return m, offset
}

func (m *region) leave() { m.users.Add(-1) }

// Region is what was registered.
func (m *region) Region() hw.Region { return m.about }

// PackKey appends the key.
func (m *region) PackKey(to []byte) []byte { return binary.LittleEndian.AppendUint64(to, m.key) }

// Close ends the registration and waits for accesses that are under way, which
// take no longer than a packet.
func (m *region) Close() error {
	m.domain.mu.Lock()
	delete(m.domain.regions, m.key)
	m.domain.mu.Unlock()
	m.closed.Store(true)
	for m.users.Load() != 0 {
		runtime.Gosched()
	}
	return nil
}
