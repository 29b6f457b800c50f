package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// The check of one-sided operations at their target, of those that the data plane serves and of those of the runtime
// (provider/internal/region), which calls Admit as well.

// Admit finds the region of a key, for an access with rights (hot.KeyRead and the like) to n bytes of which a peer
// calls the first addr. table is the address of a word with a table (hot.RegionTableLog), 0: there is none. It returns
// the region's line, where the first byte is, if the region is one part, and fi.Success. Else it returns fi.ENOKEY,
// where no region has the key; or the line and fi.EACCES, where the rights or the range are not the region's.
func Admit(table uintptr, key, addr, n uint64, rights uint32) (r *hot.Region, at uintptr, refusal fi.Errno) {
	if table == 0 {
		return nil, 0, fi.ENOKEY
	}
	word := atomic.LoadUintptr((*uintptr)(pointer(table)))
	last := uint32(1)<<(word&hot.RegionTableLog) - 1
	for i := hot.KeyPlace(key, last+1); ; i = (i + 1) & last {
		r = (*hot.Region)(pointer(word&^hot.RegionTableLog + uintptr(i)*unsafe.Sizeof(hot.Region{})))
		state := atomic.LoadUint32(&r.State)
		if state == hot.RegionLive && r.Key == key {
			break
		}
		if state == hot.RegionNone {
			return nil, 0, fi.ENOKEY
		}
	}
	offset := addr - r.Base
	if atomic.LoadUint32(&r.Access)&rights != rights || offset > r.Len || n > r.Len-offset {
		return r, 0, fi.EACCES
	}
	return r, uintptr(r.Addr + offset), fi.Success
}

// FindRegion returns the line of a key, nil if there is none. table is as Admit's.
func FindRegion(table uintptr, key uint64) *hot.Region {
	r, _, _ := Admit(table, key, 0, 0, 0)
	return r
}

// regionAt returns the address of an access to a region of the endpoint's domain; 0: the runtime performs it, or says
// why there is none.
func regionAt(ep *hot.EP, key, addr, n uint64, rights uint32) uintptr {
	_, at, _ := Admit(ep.Regions, key, addr, n, rights|hot.KeyDirect)
	return at
}
