package matched

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// addressCache has what belongs to some numbers, while a generation lasts. Any thread, also without the runtime.
type addressCache struct{ slots [64]knownAddress }

// knownAddress is what belongs to a number in a generation. A writer makes version odd, stores the rest, and makes it
// even again; a reader that finds it odd, or another afterwards, has found nothing. Sequentially consistent.
type knownAddress struct{ version, number, generation, what atomic.Uint64 }

func (c *addressCache) slot(number uint64) *knownAddress {
	return &c.slots[(number^number>>20)%uint64(len(c.slots))]
}

// find returns what belongs to a number, false if that is not known.
func (c *addressCache) find(number, generation uint64) (what uint64, ok bool) {
	k := c.slot(number)
	version := k.version.Load()
	ok = version != 0 && version&1 == 0 && k.number.Load() == number && k.generation.Load() == generation
	what = k.what.Load()
	return what, ok && k.version.Load() == version
}

// store keeps what belongs to a number, unless another thread stores in the same place.
func (c *addressCache) store(number, generation, what uint64) {
	k := c.slot(number)
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
