package provider

import (
	"fmt"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/names"
)

// addressIn finds what is at an address of the endpoint's address vector.
func (e *MatchedEndpoint) addressIn(m hw.Matcher) func(fi.Addr, []byte) (hw.MatchAddress, error) {
	var cache addressCache
	return func(a fi.Addr, name []byte) (hw.MatchAddress, error) {
		generation := e.av.Generation()
		if to, ok := cache.find(a, generation); ok {
			return to, nil
		}
		n, ok := e.av.Name(a)
		if !ok {
			return 0, fmt.Errorf("not in the address vector: %w", fi.EINVAL)
		}
		to, err := m.ParseMatchName(append(name, n.IP[:names.WordLen]...))
		if err == nil {
			cache.store(a, generation, to)
		}
		return to, err
	}
}

// addressCache has what was at some addresses of an address vector, while that is as it was. Any thread.
type addressCache struct {
	slots [64]addressSlot
}

// addressSlot is one address. Sequentially consistent: a thread that writes it makes seq odd first, by
// compare-and-swap, and even again behind the rest; one that reads it loads seq before and behind the rest.
type addressSlot struct {
	seq     atomic.Uint64
	key, to atomic.Uint64 // key is addressKey of it
}

// addressNone is the key of no address.
const addressNone = 0

// addressKey names an address in a generation of the address vector; addressNone: it has no key.
func addressKey(a fi.Addr, generation uint64) uint64 {
	if a >= 1<<32-1 {
		return addressNone
	}
	return generation<<32 | uint64(a) + 1
}

func (c *addressCache) slot(a fi.Addr) *addressSlot { return &c.slots[uint64(a)%uint64(len(c.slots))] }

// find returns what was at an address, false if that is not known.
func (c *addressCache) find(a fi.Addr, generation uint64) (hw.MatchAddress, bool) {
	s, key := c.slot(a), addressKey(a, generation)
	seq := s.seq.Load()
	if key == addressNone || seq&1 != 0 || s.key.Load() != key {
		return 0, false
	}
	to := s.to.Load()
	return hw.MatchAddress(to), s.seq.Load() == seq
}

// store keeps what is at an address, unless another thread writes to its place.
func (c *addressCache) store(a fi.Addr, generation uint64, to hw.MatchAddress) {
	s, key := c.slot(a), addressKey(a, generation)
	seq := s.seq.Load()
	if key == addressNone || seq&1 != 0 || !s.seq.CompareAndSwap(seq, seq+1) {
		return
	}
	s.key.Store(key)
	s.to.Store(uint64(to))
	s.seq.Store(seq + 2)
}
