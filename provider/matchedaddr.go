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
	// slots are written by threads that have not found an address and read by all; sequentially consistent.
	slots [64]atomic.Pointer[knownAddress]
}

// knownAddress is what is at an address in a generation of the address vector. Immutable.
type knownAddress struct {
	addr       fi.Addr
	generation uint64
	to         hw.MatchAddress
}

func (c *addressCache) slot(a fi.Addr) *atomic.Pointer[knownAddress] {
	return &c.slots[uint64(a)%uint64(len(c.slots))]
}

// find returns what was at an address, false if that is not known.
func (c *addressCache) find(a fi.Addr, generation uint64) (hw.MatchAddress, bool) {
	k := c.slot(a).Load()
	if k == nil || k.addr != a || k.generation != generation {
		return 0, false
	}
	return k.to, true
}

// store keeps what is at an address.
func (c *addressCache) store(a fi.Addr, generation uint64, to hw.MatchAddress) {
	c.slot(a).Store(&knownAddress{a, generation, to})
}
