package verbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/internal/mem"
)

// Memory is a registered region. It implements hw.Memory.
type Memory struct {
	region hw.Region
	addr   uint64 // by which the device knows the first byte
	mr     *ibv.MR
	owned  []byte // from Alloc

	d *MemoryDomain
	// mu is locked for reading while this CPU performs a peer's atomic, and for writing by Close.
	mu     sync.RWMutex
	closed bool
}

// Register makes memory known to the device.
func (d *MemoryDomain) Register(r hw.Region) (hw.Memory, error) {
	m, err := d.register(r, nil)
	if err != nil {
		return nil, err
	}
	return m, nil
}

const allAccess = hw.LocalWrite | hw.RemoteRead | hw.RemoteWrite | hw.RemoteAtomic

func (d *MemoryDomain) register(r hw.Region, owned []byte) (*Memory, error) {
	addr := uint64(uintptr(r.Addr))
	if r.DMABuf != nil {
		addr = r.DMABuf.At
	}
	n := uint64(r.Len)
	if r.Len < 1 || addr == 0 || addr+n < addr || r.Base+n < r.Base || r.Access&^allAccess != 0 {
		return nil, fmt.Errorf("verbs: register %d bytes at %#x with rights %#x: %w", r.Len, addr, r.Access,
			hw.ErrInvalid)
	}
	register := func() (*ibv.MR, error) { return d.pd.Register(addr, n, access(r.Access)) }
	if r.DMABuf != nil {
		register = func() (*ibv.MR, error) { return d.registerDMABuf(r.DMABuf, n, access(r.Access)) }
	}
	var mr *ibv.MR
	var err error
	if r.Access&^hw.LocalWrite == 0 { // peers have no use for its key
		mr, err = register()
	} else {
		mr, err = d.kept.anew(addr, n, register, (*ibv.MR).Close)
	}
	if err != nil {
		return nil, registered(err, n)
	}
	r.DMABuf = nil // whose descriptor is the caller's
	return &Memory{region: r, addr: addr, mr: mr, owned: owned, d: d}, nil
}

// access turns rights into the device's. hw.RemoteAtomic needs none: atomics go as messages. The device wants the
// right to write locally where peers may write.
func access(a hw.Access) uint32 {
	var f uint32
	for _, x := range []struct {
		right  hw.Access
		device uint32
	}{
		{hw.LocalWrite, ibv.LocalWrite},
		{hw.RemoteRead, ibv.RemoteRead},
		{hw.RemoteWrite, ibv.RemoteWrite | ibv.LocalWrite},
	} {
		if a&x.right != 0 {
			f |= x.device
		}
	}
	return f
}

// Alloc allocates and registers zeroed memory.
func (d *MemoryDomain) Alloc(r hw.Region) (hw.Memory, error) {
	if r.Len < 1 {
		return nil, fmt.Errorf("verbs: allocate %d bytes: %w", r.Len, hw.ErrInvalid)
	}
	b, err := mapPinned(r.Len)
	if err != nil {
		return nil, fmt.Errorf("verbs: allocate %d bytes: %w: %w", r.Len, err, hw.ErrNoResource)
	}
	r.Addr = addressPointer(b)
	m, err := d.register(r, b)
	if err != nil {
		return nil, errors.Join(err, mem.Unmap(b))
	}
	return m, nil
}

// mapPinned maps memory that is to be registered. Children of fork do not get
// it: whatever the kernel does about pinned pages on fork, these stay ours.
func mapPinned(n int) ([]byte, error) {
	b, err := mem.Map(n, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Madvise(b, unix.MADV_DONTFORK); err != nil {
		return nil, errors.Join(fmt.Errorf("keep memory from children: %w", err), mem.Unmap(b))
	}
	return b, nil
}

// has reports whether a segment lies in the region.
func (m *Memory) has(s hw.Segment) bool {
	at, size := uint64(uintptr(s.Addr))-uint64(uintptr(m.region.Addr)), uint64(m.region.Len)
	return s.Len >= 0 && at <= size && uint64(s.Len) <= size-at
}

// at is the address by which the device knows a segment that lies in the region.
func (m *Memory) at(s hw.Segment) uint64 {
	return m.addr + (uint64(uintptr(s.Addr)) - uint64(uintptr(m.region.Addr)))
}

// Region is what was registered.
func (m *Memory) Region() hw.Region { return m.region }

// Close ends the registration.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	if err := m.mr.Close(); err != nil {
		return fmt.Errorf("verbs: %w", err)
	}
	m.closed = true
	return mem.Unmap(m.owned)
}

// keyBytes is the length of a packed key:
//
//	version | rights | device key:4 | base:8 | address:8 | length:8
const (
	keyBytes   = 30
	keyVersion = 1
)

// PackKey appends the remote key.
func (m *Memory) PackKey(to []byte) []byte {
	to = append(to, keyVersion, byte(m.region.Access))
	to = binary.LittleEndian.AppendUint32(to, m.mr.RKey)
	to = binary.LittleEndian.AppendUint64(to, m.region.Base)
	to = binary.LittleEndian.AppendUint64(to, m.addr)
	return binary.LittleEndian.AppendUint64(to, uint64(m.region.Len))
}

// UnpackKey reads a packed key.
func (d *MemoryDomain) UnpackKey(packed []byte) (hw.RemoteKey, error) { return unpackKey(packed) }

// unpackKey reads a packed key: the words of a hw.RemoteKey are the device's
// key with the rights and a mark, the base, the address, and the length.
func unpackKey(b []byte) (k hw.RemoteKey, err error) {
	if len(b) != keyBytes || b[0] != keyVersion || hw.Access(b[1])&^allAccess != 0 {
		return k, fmt.Errorf("verbs: remote key of %d bytes: %w", len(b), hw.ErrInvalid)
	}
	k[0] = uint64(binary.LittleEndian.Uint32(b[2:])) | uint64(b[1])<<32 | 1<<63
	for n := range 3 {
		k[1+n] = binary.LittleEndian.Uint64(b[6+8*n:])
	}
	if k[3] == 0 || k[1]+k[3] < k[1] || k[2]+k[3] < k[2] {
		return hw.RemoteKey{}, fmt.Errorf("verbs: remote key: range wraps: %w", hw.ErrInvalid)
	}
	return k, nil
}

// remote is where the peer's device finds n bytes at addr, which is in the
// terms of the key's region, and under which key. The check here saves a
// connection: the peer's device answers what is out of range by breaking it.
func remote(k hw.RemoteKey, addr uint64, n uint64, need hw.Access) (at uint64, rkey uint32, err error) {
	off := addr - k[1]
	if k[0]>>63 == 0 || hw.Access(k[0]>>32)&need != need || addr < k[1] || off > k[3] || n > k[3]-off {
		return 0, 0, hw.ErrKey
	}
	return k[2] + off, uint32(k[0]), nil
}
