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

// Covers reports whether an entry allows an access to n bytes with some rights, hot.KeyRead and hot.KeyWrite.
func Covers(k *hot.Key, addr, n uint64, rights uint32) bool {
	offset, all := addr-atomic.LoadUint64(&k.Base), atomic.LoadUint64(&k.Len)
	return atomic.LoadUint32(&k.Access)&rights == rights && offset <= all && n <= all-offset
}

// Allowed reports whether the peer has a region of this name, range and rights now.
func (t Keys) Allowed(name, addr, n uint64, rights uint32) bool {
	k, _, _ := t.Find(name)
	return k != nil && Covers(k, addr, n, rights)
}

// Locate returns the address in the peer's process of an access to an entry that was found in a state; ok is false if
// it is not allowed, or no longer. The caller has a claim, so the owner waits with the end of a region that is seen
// here.
func Locate(k *hot.Key, state, addr, n uint64, rights uint32) (at uint64, ok bool) {
	if atomic.LoadUint64(&k.State) != state { // after the claim
		return 0, false
	}
	at = atomic.LoadUint64(&k.Addr) + (addr - atomic.LoadUint64(&k.Base))
	ok = Covers(k, addr, n, rights)
	return at, ok && atomic.LoadUint64(&k.State) == state
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
