package verbs

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
)

// A device may give the key of a region that is closed to a new one: keys have 32 bits, of which few change each time.
// A peer that still has the old key would reach the new region where that is at the same addresses, which are what the
// device checks beside the key.

// keptKeys are the device's keys that peers may keep (hw.Lasting), with the memory that each has named. Those of
// regions that are closed stay.
type keptKeys struct {
	mu    sync.Mutex // control operations only
	spans map[uint32]span
}

// span is memory from an address to the one behind it.
type span struct{ first, end uint64 }

const (
	maxKept    = 1 << 16
	maxRefused = 16 // registrations of the same memory whose keys are not taken
)

// add has a key be kept that names n bytes at addr. False: there is no room for it.
func (k *keptKeys) add(key uint32, addr, n uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, known := k.spans[key]
	switch {
	case known:
		s = span{min(s.first, addr), max(s.end, addr+n)}
	case len(k.spans) == maxKept:
		return false
	default:
		s = span{addr, addr + n}
	}
	if k.spans == nil {
		k.spans = map[uint32]span{}
	}
	k.spans[key] = s
	return true
}

// named reports whether a key that is kept has named some of n bytes at addr.
func (k *keptKeys) named(key uint32, addr, n uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, known := k.spans[key]
	return known && addr < s.end && s.first < addr+n
}

// anew registers memory with register until the device gives a key that has named none of it before, and takes the
// other registrations back with drop. EAGAIN: the device gives no such key.
func (k *keptKeys) anew(addr, n uint64, register func() (*ibv.MR, error), drop func(*ibv.MR) error) (*ibv.MR, error) {
	var refused []*ibv.MR // they stay meanwhile, or the device would give the same key again
	defer func() {
		for _, m := range refused {
			_ = drop(m)
		}
	}()
	for len(refused) < maxRefused {
		m, err := register()
		if err != nil || !k.named(m.RKey, addr, n) {
			return m, err
		}
		refused = append(refused, m)
	}
	return nil, unix.EAGAIN
}

// Keep has the key name no other region with some of this memory, as long as the domain is open. False: 65536 keys are
// kept.
func (m *Memory) Keep() bool { return m.d.kept.add(m.mr.RKey, m.addr, uint64(m.region.Len)) }

// KeyRegion is what a key says of its region.
func (d *MemoryDomain) KeyRegion(k hw.RemoteKey) hw.Region {
	return hw.Region{Base: k[1], Len: int(k[3]), Access: hw.Access(k[0]>>32) & allAccess}
}
