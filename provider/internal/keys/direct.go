package keys

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
)

// DirectSize is how many regions the data plane finds at most, a power of two.
const DirectSize = 1024

// Direct are the regions that the data plane finds by their keys (struct weft_hot_region), in a table of plain words
// that is made when it is first asked for. Regions that have no room here are served by the runtime. The zero Direct is
// empty; any thread may call its methods.
type Direct struct {
	mu    sync.Mutex // control operations only
	table mem.Array[hot.Region]
}

// First returns the table, nil when there is no memory for it.
func (t *Direct) First() *hot.Region {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.table.Len() == 0 {
		table, err := mem.NewArray[hot.Region](DirectSize)
		if err != nil {
			log.Infof(log.MR, "no table of regions for C: %v", err)
			return nil
		}
		t.table = table
	}
	return t.table.At(0)
}

// Add enters a region, of which Live is not read, and returns its entry, nil: there is no room.
func (t *Direct) Add(region hot.Region) *hot.Region {
	if t.First() == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	place := hot.KeyPlace(region.Key, DirectSize)
	for n := range uint32(hot.KeyProbes) {
		r := t.table.At((place + n) & (DirectSize - 1))
		if atomic.LoadUint32(&r.Live) != 0 {
			continue
		}
		r.Access, r.Key, r.Addr, r.Base, r.Len = region.Access, region.Key, region.Addr, region.Base, region.Len
		atomic.StoreUint32(&r.Live, 1) // release: readers load it first
		return r
	}
	return nil
}

// Remove takes entries out, of which some may be nil, and waits until no thread is at them.
func (t *Direct) Remove(entries ...*hot.Region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	removed := false
	for _, r := range entries {
		if r != nil {
			atomic.StoreUint32(&r.Live, 0)
			removed = true
		}
	}
	if !removed {
		return
	}
	order.Barrier()
	for g := hot.NewGrace(); !g.Over(); {
		runtime.Gosched()
	}
}

// Close gives the memory back. No thread uses the table any more.
func (t *Direct) Close() { _ = t.table.Free() }
