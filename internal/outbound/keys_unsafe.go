package outbound

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
)

// Keys is the key table of a peer's segment, behind which its claims stand. The peer may write it at any time.
type Keys struct {
	At    uintptr // address of the first entry
	Count uint32  // of entries, a power of two; 0: the peer publishes no region
}

// Entry is entry i, which is less than Count.
func (t Keys) Entry(i uint32) *hot.Key {
	at := t.At + uintptr(i)*unsafe.Sizeof(hot.Key{})
	return *(**hot.Key)(unsafe.Pointer(&at))
}

// Find finds a name and returns its entry, the number of the entry, and its state; nil: the peer has none.
func (t Keys) Find(name uint64) (k *hot.Key, i uint32, state uint64) {
	place := hot.KeyPlace(name, t.Count)
	for n := range min(hot.KeyProbes, t.Count) {
		i = (place + n) & (t.Count - 1)
		k = t.Entry(i)
		state = atomic.LoadUint64(&k.State)
		if state&1 != 0 && atomic.LoadUint64(&k.Name) == name && atomic.LoadUint64(&k.State) == state {
			return k, i, state
		}
	}
	return nil, 0, 0
}

// Extent is the range of a region.
type Extent struct {
	Base, Len uint64 // of the addresses by which the owner names it
	Shift     uint64 // what is added to make them addresses in its process
}

// extentOf reads what an entry says.
func extentOf(k *hot.Key) Extent {
	base := atomic.LoadUint64(&k.Base)
	return Extent{base, atomic.LoadUint64(&k.Len), atomic.LoadUint64(&k.Addr) - base}
}

// Has reports whether n bytes at an address are in the range.
func (x *Extent) Has(addr, n uint64) bool {
	offset := addr - x.Base
	return offset <= x.Len && n <= x.Len-offset
}

// allows reports whether an entry allows accesses with some rights, hot.KeyRead and hot.KeyWrite.
func allows(k *hot.Key, rights uint32) bool { return atomic.LoadUint32(&k.Access)&rights == rights }

// Allowed reports whether the peer has a region of this name, range and rights now.
func (t Keys) Allowed(name, addr, n uint64, rights uint32) bool {
	k, _, _ := t.Find(name)
	if k == nil || !allows(k, rights) {
		return false
	}
	x := extentOf(k)
	return x.Has(addr, n)
}

// Claimant is the process that claims regions, and the claim to begin the search for a free one with.
type Claimant struct {
	PID   uint32
	First uint32
	Start uint64 // of the process, as claims have it
}

// ClaimName is ClaimEntry of the entry with a name.
func (t Keys) ClaimName(c *Claimant, name uint64, rights uint32) (claim *hot.Claim, x Extent, why Refusal) {
	k, entry, state := t.Find(name)
	if k == nil {
		return nil, x, Refused
	}
	return t.ClaimEntry(c, entry, state, rights)
}

// ClaimEntry claims an entry that was found in a state for accesses with some rights, and returns its range. why:
// Later, when no claim is free; Refused, when that is not allowed, or not any longer. The caller checks the range, and
// gives the claim back with [Release]: until then the owner waits with the end of the region.
func (t Keys) ClaimEntry(
	c *Claimant, entry uint32, state uint64, rights uint32,
) (claim *hot.Claim, x Extent, why Refusal) {
	claim, at := t.Claim(entry, c.PID, c.Start, c.First)
	if claim == nil {
		return nil, x, Later
	}
	c.First = at
	k := t.Entry(entry)
	x = extentOf(k)
	// after the claim: the owner waits with the end of a region that is seen here
	if !allows(k, rights) || atomic.LoadUint64(&k.State) != state {
		Release(claim)
		return nil, x, Refused
	}
	return claim, x, None
}

// Claim says that a process, named by its number and the time of its start, is at an entry. It takes the first free
// claim from one on; nil: all are taken. The caller gives it back with [Release].
func (t Keys) Claim(entry, pid uint32, start uint64, first uint32) (c *hot.Claim, i uint32) {
	word := uint64(pid)<<32 | uint64(entry+1)
	for n := range uint32(hot.Claims) {
		i = (first + n) % hot.Claims
		at := t.At + uintptr(t.Count)*unsafe.Sizeof(hot.Key{}) + uintptr(i)*unsafe.Sizeof(hot.Claim{})
		c = *(**hot.Claim)(unsafe.Pointer(&at))
		if atomic.LoadUint64(&c.Word) == 0 && atomic.CompareAndSwapUint64(&c.Word, 0, word) {
			atomic.StoreUint64(&c.StartTime, start)
			return c, i
		}
	}
	return nil, 0
}

// Release gives a claim back.
func Release(c *hot.Claim) {
	atomic.StoreUint64(&c.StartTime, 0)
	atomic.StoreUint64(&c.Word, 0)
}
