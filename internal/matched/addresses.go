package matched

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// addressCache has what belongs to some numbers, while a generation lasts. Any thread, also without the runtime.
//
// A number is in one of cacheWays places in a row. Where the row begins does not follow from the number alone:
// addresses of devices differ in few bits, and those of peers are what these choose.
type addressCache struct {
	seed  uint64 // immutable; random
	slots [cacheSlots]knownAddress
}

const (
	cacheSlots = 1 << cacheBits
	cacheBits  = 10
	cacheWays  = 4
)

// knownAddress is what belongs to a number in a generation. A writer makes version odd, stores the rest, and makes it
// even again; a reader that finds it odd, or another afterwards, has found nothing. Sequentially consistent.
type knownAddress struct{ version, number, generation, what atomic.Uint64 }

// open chooses the places.
func (c *addressCache) open() { c.seed = rand.Uint64() }

// first is where the places of a number begin: the top bits of both halves of a product, of which the lower spreads
// numbers in a row, and neither is known without the seed.
func (c *addressCache) first(number uint64) uint64 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
	high, low := bits.Mul64(number^c.seed, golden)
	return (high ^ low) >> (64 - cacheBits)
}

// find returns what belongs to a number, false if that is not known.
func (c *addressCache) find(number, generation uint64) (what uint64, ok bool) {
	first := c.first(number)
	for n := range uint64(cacheWays) {
		k := &c.slots[(first+n)%cacheSlots]
		version := k.version.Load()
		if version == 0 || version&1 != 0 || k.number.Load() != number || k.generation.Load() != generation {
			continue
		}
		what = k.what.Load()
		if k.version.Load() == version {
			return what, true
		}
	}
	return 0, false
}

// store keeps what belongs to a number, in the first of its places that has nothing of this generation, else in any of
// them, unless another thread stores in the same place.
func (c *addressCache) store(number, generation, what uint64) {
	first := c.first(number)
	at := first + what%cacheWays
	for n := range uint64(cacheWays) {
		k := &c.slots[(first+n)%cacheSlots]
		if k.version.Load() == 0 || k.generation.Load() != generation || k.number.Load() == number {
			at = first + n
			break
		}
	}
	k := &c.slots[at%cacheSlots]
	version := k.version.Load()
	if version&1 != 0 || !k.version.CompareAndSwap(version, version+1) {
		return
	}
	k.number.Store(number)
	k.generation.Store(generation)
	k.what.Store(what)
	k.version.Store(version + 2)
}

// address finds what is at an address. Errors: as Options.Address.
func (e *Endpoint) address(a fi.Addr, name []byte) (hw.MatchAddress, error) {
	if e.o.Generation == nil {
		return e.o.Address(a, name)
	}
	generation := e.o.Generation.Load()
	if to, ok := e.addresses.find(uint64(a), generation); ok {
		return hw.MatchAddress(to), nil
	}
	to, err := e.o.Address(a, name)
	if err == nil {
		e.addresses.store(uint64(a), generation, uint64(to))
	}
	return to, err
}

// source is the address of a sender, fi.AddrNotAvail if it has none. Lease.
func (e *Endpoint) source(from hw.MatchAddress) fi.Addr {
	if e.o.Source == nil {
		return fi.AddrNotAvail
	}
	if e.o.Generation == nil {
		return e.o.Source(from)
	}
	generation := e.o.Generation.Load()
	if a, ok := e.senders.find(uint64(from), generation); ok {
		return fi.Addr(a)
	}
	a := e.o.Source(from)
	if a != fi.AddrNotAvail {
		e.senders.store(uint64(from), generation, uint64(a))
	}
	return a
}

// directed reports whether receives take messages of the sender that they name only.
func (e *Endpoint) directed(tagged bool) bool {
	if tagged {
		return !e.o.Anyone[1]
	}
	return !e.o.Anyone[0]
}
